/** A request to stop, from the first signal on: to the job while there is one, to our own waiting otherwise. */
import { constants } from 'node:os'
import type { Child } from './child.ts'
import { onSignals, type SignalOrder } from './signals.ts'

export interface Stop {
  readonly requested: boolean
  /** Aborts with the first request. */
  readonly signal: AbortSignal
  /** 128 + n of the signal that asked; 0 while none did. */
  readonly exitCode: number
  /** The signal that asked. */
  readonly by: NodeJS.Signals | null
  /** Signals go to this child from now on. Returns how to take that back. */
  guide(child: Child): () => void
  /** Signals do again what they do to any process; until the returned function is called. */
  standDown(): () => void
}

export function listenForStop(): Stop {
  const abort = new AbortController()
  let by: NodeJS.Signals | null = null
  let child: Child | null = null

  function heed(signal: NodeJS.Signals, order: SignalOrder): void {
    if (order === 'forward') return void child?.signal(signal)
    if (order === 'kill') return void child?.terminate('SIGKILL')
    by = signal
    abort.abort()
    void child?.terminate(signal)
  }
  let ignore = onSignals(heed)

  return {
    get requested() {
      return by !== null
    },
    signal: abort.signal,
    get exitCode() {
      return by === null ? 0 : 128 + constants.signals[by]
    },
    get by() {
      return by
    },
    guide(guided) {
      child = guided
      if (by !== null) void child.terminate(by)
      return () => void (child = null)
    },
    standDown() {
      ignore()
      return () => void (ignore = onSignals(heed))
    },
  }
}

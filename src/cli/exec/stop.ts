/** A request to stop, from the first signal on: to the jobs while there are any, to our own waiting otherwise. */
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
  /** Signals go to this child too from now on. Returns how to take that back. */
  guide(child: Child): () => void
  /** Signals do again what they do to any process, unless there is a child; until the returned function is called, or there is one. */
  standDown(): () => void
}

export function listenForStop(): Stop {
  const abort = new AbortController()
  let by: NodeJS.Signals | null = null
  const children = new Set<Child>()

  function heed(signal: NodeJS.Signals, order: SignalOrder): void {
    if (order === 'forward') return children.forEach((child) => child.signal(signal))
    if (order === 'kill') return children.forEach((child) => void child.terminate('SIGKILL'))
    by = signal
    abort.abort()
    children.forEach((child) => void child.terminate(signal))
  }
  let ignore: (() => void) | null = onSignals(heed)
  const standUp = () => void (ignore ??= onSignals(heed))

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
    guide(child) {
      standUp()
      children.add(child)
      if (by !== null) void child.terminate(by)
      return () => void children.delete(child)
    },
    standDown() {
      if (children.size > 0) return () => {}
      ignore?.()
      ignore = null
      return standUp
    },
  }
}

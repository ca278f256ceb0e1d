/** The pacemaker on a thread of its own: a handler that blocks the event loop does not lose its lease. */
import { Worker } from 'node:worker_threads'
import type { LeaseTerms } from '../model/lease.ts'
import type { Holder } from '../model/run.ts'
import type { GroupEvents } from './group-heart.ts'
import { heldText, namesText } from './held-text.ts'
import { LONGEST_TIMER_MS, monotonicMs, safeUntil, type HeartEvents, type LossReason } from './heart.ts'
import type { Pacemaker, Pulse, PulseGroup } from './pacemaker.ts'

export type ToThread =
  | { readonly say: 'start'; readonly id: number; readonly of: Holder; readonly terms: LeaseTerms; readonly claimedAt: number }
  | { readonly say: 'stop'; readonly id: number }
  | { readonly say: 'group'; readonly id: number; readonly terms: LeaseTerms; readonly hungAfterMs: number; readonly alive: BigInt64Array }
  | { readonly say: 'hold'; readonly id: number; readonly runs: string }
  | { readonly say: 'let_go'; readonly id: number; readonly names: string }
  | { readonly say: 'close' }

export type FromThread =
  | { readonly say: 'watching' | 'renewed' | 'cancelled'; readonly id: number; readonly names?: readonly string[] }
  | { readonly say: 'missed'; readonly id: number; readonly error: string }
  | { readonly say: 'lost'; readonly id: number; readonly reason: LossReason; readonly names?: readonly string[] }

interface Pulsing {
  readonly events: HeartEvents
  /** Until the thread, which takes a while to start, has its eye on the lease. */
  readonly untilWatched: NodeJS.Timeout
  watched: boolean
}

// The thread's file stands beside this one, as TypeScript in a checkout and as JavaScript in the package.
const THREAD = new URL(import.meta.url.endsWith('.ts') ? './pacemaker-thread.ts' : './pacemaker-thread.js', import.meta.url)

export class ThreadedPacemaker implements Pacemaker {
  readonly #url: string
  readonly #pulses = new Map<number, Pulsing>()
  readonly #groups = new Map<number, { readonly events: GroupEvents; readonly begin: ToThread }>()
  #worker: Worker | undefined
  #nextId = 1

  constructor(url: string) {
    this.#url = url
  }

  start(of: Holder, terms: LeaseTerms, claimedAt: number, events: HeartEvents): Pulse {
    const id = this.#nextId++
    // Not before the messages that came while a handler blocked this loop have been heard.
    const leftMs = Math.max(0, safeUntil(claimedAt, terms) - monotonicMs())
    const untilWatched = setTimeout(() => setImmediate(() => this.#giveUpUnwatched(id)), Math.min(leftMs, LONGEST_TIMER_MS)).unref()
    this.#pulses.set(id, { events, untilWatched, watched: false })
    this.#send({ say: 'start', id, of, terms, claimedAt })
    return {
      stop: () => {
        if (this.#forget(id)) this.#send({ say: 'stop', id })
      },
    }
  }

  group(terms: LeaseTerms, events: GroupEvents, hungAfterMs: number): PulseGroup {
    const id = this.#nextId++
    const alive = new BigInt64Array(new SharedArrayBuffer(8))
    const beAlive = () => Atomics.store(alive, 0, BigInt(Math.floor(monotonicMs())))
    beAlive()
    const timer = setInterval(beAlive, Math.min(hungAfterMs / 4, 500)).unref()
    const begin: ToThread = { say: 'group', id, terms, hungAfterMs, alive }
    this.#groups.set(id, { events, begin })
    this.#worker?.postMessage(begin)
    return {
      // As text: objects and lists are copied from thread to thread piece by piece.
      hold: (runs) => this.#send({ say: 'hold', id, runs: heldText(runs) }),
      letGo: (names) => this.#send({ say: 'let_go', id, names: namesText(names) }),
      stop: () => {
        clearInterval(timer)
        if (this.#groups.delete(id)) this.#send({ say: 'stop', id })
      },
    }
  }

  async close(): Promise<void> {
    const worker = this.#worker
    if (!worker) return
    worker.ref() // We wait for its end, so it must keep the process alive until then.
    const ended = new Promise((resolve) => worker.once('exit', resolve))
    this.#send({ say: 'close' })
    await ended
  }

  #send(message: ToThread): void {
    this.#worker ??= this.#spawn()
    this.#worker.postMessage(message)
  }

  #spawn(): Worker {
    const worker = new Worker(THREAD, { workerData: { url: this.#url }, name: 'runledger heartbeats' })
    worker.unref() // Heartbeats alone keep no process alive.
    worker.on('message', (message: FromThread) => this.#hear(message))
    // Without its thread no claim is renewed: every one of them is as good as lost, and is told so.
    worker.on('error', (error) => this.#loseAll(error))
    worker.on('exit', () => (this.#worker = undefined))
    // A new thread knows nothing of the groups of the one before.
    for (const { begin } of this.#groups.values()) worker.postMessage(begin)
    return worker
  }

  #hear(message: FromThread): void {
    const group = this.#groups.get(message.id)
    if (group) return tellGroup(group.events, message)
    const pulsing = this.#pulses.get(message.id)
    if (!pulsing) return
    const { events, untilWatched } = pulsing
    switch (message.say) {
      case 'watching':
        pulsing.watched = true
        return clearTimeout(untilWatched)
      case 'renewed':
        return events.renewed?.()
      case 'cancelled':
        return events.cancelled?.()
      case 'missed':
        return events.missed?.(new Error(message.error))
      case 'lost':
        this.#forget(message.id)
        return events.lost(message.reason)
    }
  }

  #giveUpUnwatched(id: number): void {
    if (this.#pulses.get(id)?.watched !== false) return
    this.#send({ say: 'stop', id })
    this.#forget(id)?.lost('not_renewed', new Error('the thread of the heartbeats did not start in time'))
  }

  #loseAll(cause: unknown): void {
    for (const id of this.#pulses.keys()) this.#forget(id)?.lost('not_renewed', cause)
    for (const { events } of this.#groups.values()) events.lost(null, 'not_renewed')
  }

  #forget(id: number): HeartEvents | undefined {
    const pulsing = this.#pulses.get(id)
    clearTimeout(pulsing?.untilWatched)
    this.#pulses.delete(id)
    return pulsing?.events
  }
}

function tellGroup(events: GroupEvents, message: FromThread): void {
  if (message.say === 'renewed') events.renewed?.(message.names ?? [])
  else if (message.say === 'cancelled') events.cancelled?.(message.names ?? [])
  else if (message.say === 'missed') events.missed?.(new Error(message.error))
  else if (message.say === 'lost') events.lost(message.names ?? [], message.reason)
}

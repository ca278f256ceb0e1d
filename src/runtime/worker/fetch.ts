/**
 * The loop of a worker: looks once an interval whether there is anything to do, fetches while there is and there is room,
 * and tends the line for everybody: due runs, owners that are gone, keys that nobody holds.
 */
import { probeWrite } from '../../store/probe-write.ts'
import { look, promote } from '../../store/tend-line.ts'
import { sweepLine, SWEEP_START } from '../../store/sweep-line.ts'
import type { Store } from '../../store/tables.ts'
import { monotonicMs } from '../heart.ts'
import type { Health } from './health.ts'
import { jittered, Wake } from './wake.ts'

export interface FetchParts {
  readonly store: Store
  readonly health: Health
  readonly queues: readonly string[]
  readonly tasks: readonly string[]
  readonly pollMs: number
  /** How many more runs there is room for. */
  wanted(): number
  /** Takes up to that many of a queue. @returns whether there may be more */
  take(queue: string, limit: number): Promise<boolean>
  /** Once an interval, whether there is anything to fetch or not. */
  onInterval(): Promise<void>
  reap(): Promise<void>
}

/** How often it asks whether it can write, and tends the line. */
const UPKEEP_EVERY_MS = 5_000
/** Of its time it spends at most one part in so many on tending. */
const TEND_SHARE = 10
/** After a failed question; it doubles up to the poll interval, or this if that is shorter. */
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

export class FetchLoop {
  /** Hinted from outside: there may be work. */
  readonly work = new Wake()
  /** Hinted by the slots: there may be room. */
  readonly room = new Wake()
  readonly #parts: FetchParts
  #stopped = false
  #nextLookAt = 0
  #nextProbeAt = 0
  #nextTendAt = 0
  #tending: Promise<void> | null = null
  #turn = 0
  #cursor = SWEEP_START
  #pauseMs = FIRST_PAUSE_MS

  constructor(parts: FetchParts) {
    this.#parts = parts
  }

  /** Goes on through everything until it is stopped. */
  async run(): Promise<void> {
    let more = true
    while (!this.#stopped) {
      try {
        if (monotonicMs() >= this.#nextLookAt) more = (await this.#look(more)) || more
        const wanted = this.#parts.wanted()
        if (more && wanted > 0) more = await this.#fetch(wanted)
        else if (more) await this.room.wait(this.#untilLook)
        else more = await this.work.wait(this.#untilLook)
        this.#pauseMs = FIRST_PAUSE_MS
      } catch {
        // Said by its health. Whatever it was, a loop that ended here would leave a process that lives and does nothing.
        this.#nextLookAt = this.#nextProbeAt = 0 // Whether it can write is what it asks first then.
        await this.work.wait(jittered(this.#pauseMs))
        this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
        more = true
      }
    }
  }

  stop(): void {
    this.#stopped = true
    this.work.hint()
    this.room.hint()
  }

  /** Resolves when it asks nothing any more; to be called once run() has ended. */
  async quiet(): Promise<void> {
    await this.#tending
  }

  get #untilLook(): number {
    return Math.max(0, this.#nextLookAt - monotonicMs())
  }

  /** @param known there is something to fetch: that is not asked for then */
  async #look(known: boolean): Promise<boolean> {
    const { store, health, queues, tasks, pollMs } = this.#parts
    if (monotonicMs() >= this.#nextProbeAt) await health.ask(() => probeWrite(store))
    await this.#parts.onInterval()
    const { ready, due } = await health.ask(() => look(store, known ? [] : queues, tasks), 'read')
    const promoted = due ? await health.ask(() => promote(store), 'read') : 0
    const now = monotonicMs()
    this.#nextLookAt = now + (promoted > 0 ? 0 : jittered(pollMs))
    if (now >= this.#nextProbeAt) this.#nextProbeAt = now + jittered(UPKEEP_EVERY_MS)
    if (now >= this.#nextTendAt) this.#tending ??= this.#tend(now)
    return ready || promoted > 0
  }

  /** Beside the claims, which do not wait for it: where a snapshot is held, it reads through all that was done since. */
  async #tend(begunAt: number): Promise<void> {
    const { store, health, reap } = this.#parts
    this.#nextTendAt = Infinity
    try {
      await health.ask(reap, 'read')
      const { next, madeReady } = await health.ask(() => sweepLine(store, this.#cursor), 'read')
      this.#cursor = next
      if (madeReady > 0) this.work.hint()
    } catch {
      // Said by its health; the next turn comes.
    }
    const now = monotonicMs()
    this.#nextTendAt = now + Math.max(jittered(UPKEEP_EVERY_MS), TEND_SHARE * (now - begunAt))
    this.#tending = null
  }

  /** One queue after the other, beginning with another one each time, so that a full one does not starve the rest. */
  async #fetch(wanted: number): Promise<boolean> {
    const { queues } = this.#parts
    let more = false
    for (let nth = 0; nth < queues.length && !this.#stopped; nth++) {
      const room = nth === 0 ? wanted : this.#parts.wanted()
      if (room <= 0) return true
      more = (await this.#parts.take(queues[(this.#turn + nth) % queues.length]!, room)) || more
    }
    this.#turn++
    return more
  }
}

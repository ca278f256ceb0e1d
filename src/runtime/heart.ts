/**
 * The heartbeats of one claim: renews its lease, and says when it can no longer be counted on.
 *
 * Time is our own monotonic clock, from the moment a renewal was *sent*: the database counts from a later one, so we
 * always give up first. A claim that could not be renewed for three quarters of its lease is over for us, whatever
 * the database will say; the last quarter is for stopping the work (laravel/framework#53342, rails/solid_queue#778).
 */
import type { Holder } from '../model/run.ts'
import type { LeaseTerms } from '../model/lease.ts'
import type { Beat } from '../store/close.ts'

/** Why a claim is over before its work was. */
export type LossReason = 'not_renewed' | 'taken'

export interface HeartEvents {
  /** The lease was renewed; it now ends at the latest `leaseMs` after this call. */
  renewed?(): void
  /** An operator wants the work stopped; the lease is renewed until it is. May be called more than once. */
  cancelled?(): void
  /** Called once; no beat follows. */
  lost(reason: LossReason, cause?: unknown): void
  /** A beat failed and will be tried again. */
  missed?(error: unknown): void
}

export const SAFE_PART_OF_LEASE = 0.75

/** Timers beyond 2^31 - 1 ms fire at once (nodejs/node, all versions); an hour is as good for a lease of months. */
export const LONGEST_TIMER_MS = 3_600_000

/** Milliseconds of a clock that never jumps and that all threads of the process share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/** Until when, by monotonicMs(), a lease that was claimed or renewed by a statement sent at `sentAt` can be counted on. */
export function safeUntil(sentAt: number, { leaseMs }: LeaseTerms): number {
  return sentAt + leaseMs * SAFE_PART_OF_LEASE
}

export class Heart {
  readonly #beat: (of: Holder) => Promise<Beat>
  readonly #of: Holder
  readonly #terms: LeaseTerms
  readonly #events: HeartEvents
  #safeUntil: number
  #timer: NodeJS.Timeout | undefined
  #deadline: NodeJS.Timeout | undefined
  #stopped = false

  /** @param beat one heartbeat on a connection of its own; @param claimedAt when the claim was sent, by monotonicMs() */
  constructor(beat: (of: Holder) => Promise<Beat>, of: Holder, terms: LeaseTerms, claimedAt: number, events: HeartEvents) {
    this.#beat = beat
    this.#of = of
    this.#terms = terms
    this.#events = events
    this.#safeUntil = safeUntil(claimedAt, terms)
    this.#schedule(terms.heartbeatMs)
    this.#watch()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    clearTimeout(this.#deadline)
  }

  #schedule(ms: number): void {
    if (!this.#stopped) this.#timer = setTimeout(() => void this.#once(), Math.min(ms, LONGEST_TIMER_MS))
  }

  async #once(): Promise<void> {
    const sentAt = monotonicMs()
    try {
      const beat = await this.#beat(this.#of)
      if (this.#stopped) return
      if (beat === 'lost') return this.#lose('taken')
      this.#safeUntil = safeUntil(sentAt, this.#terms)
      this.#events.renewed?.()
      if (beat === 'cancelled') this.#events.cancelled?.()
      this.#watch()
      this.#schedule(this.#terms.heartbeatMs)
    } catch (error) {
      if (this.#stopped) return
      this.#events.missed?.(error)
      this.#schedule(Math.min(this.#terms.heartbeatMs, 1000)) // Sooner than usual: the time left is shorter than usual.
    }
  }

  /** A timer of its own: a beat that hangs in a black hole must not delay the verdict. */
  #watch(): void {
    clearTimeout(this.#deadline)
    const left = this.#safeUntil - monotonicMs()
    if (left <= 0) return this.#lose('not_renewed')
    this.#deadline = setTimeout(() => this.#watch(), Math.min(left, LONGEST_TIMER_MS))
  }

  #lose(reason: LossReason): void {
    if (this.#stopped) return
    this.stop()
    this.#events.lost(reason)
  }
}

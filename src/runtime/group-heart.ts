/**
 * The heartbeats of all runs that a worker holds: one statement renews them, and each of them is told when it is lost.
 *
 * The same rules as for one claim (runtime/heart.ts): time is our own monotonic clock from the moment a renewal was
 * sent, and a run that could not be renewed for three quarters of its lease is over for us.
 */
import type { LeaseTerms } from '../model/lease.ts'
import { nameOf, type Holder } from '../model/run.ts'
import type { Beats } from '../store/heartbeat-batch.ts'
import { monotonicMs, safeUntil, type LossReason } from './heart.ts'

export interface GroupEvents {
  renewed?(names: readonly string[]): void
  /** An operator asked these to stop; their leases are renewed, for the work to be stopped in. Said at each beat. */
  cancelled?(names: readonly string[]): void
  /** Said once of each; null for all of them, when the heartbeats themselves have ended. */
  lost(names: readonly string[] | null, reason: LossReason): void
  /** A beat failed and will be tried again. */
  missed?(error: unknown): void
}

export interface HeldRun {
  readonly of: Holder
  /** When the claim was sent, by monotonicMs(). */
  readonly claimedAt: number
}

interface Entry {
  readonly of: Holder
  renewedAt: number
}

/** Runs in one statement. */
const BATCH = 1000

export class GroupHeart {
  readonly #beat: (of: readonly Holder[]) => Promise<Beats>
  readonly #terms: LeaseTerms
  readonly #events: GroupEvents
  readonly #isHung: () => boolean
  readonly #held = new Map<string, Entry>()
  #beating = false
  #nextBeatAt = 0
  #timer: NodeJS.Timeout | undefined

  /** @param beat renews them and says which are not ours any more, and which are to stop; @param isHung the program that holds the runs does nothing any more: then no beat is sent */
  constructor(beat: (of: readonly Holder[]) => Promise<Beats>, terms: LeaseTerms, events: GroupEvents, isHung: () => boolean = () => false) {
    this.#beat = beat
    this.#terms = terms
    this.#events = events
    this.#isHung = isHung
  }

  hold(runs: readonly HeldRun[]): void {
    for (const { of, claimedAt } of runs) this.#held.set(nameOf(of), { of, renewedAt: claimedAt })
    if (this.#timer || this.#held.size === 0) return
    this.#nextBeatAt = monotonicMs() + this.#terms.heartbeatMs
    this.#timer = setInterval(() => this.#tick(), Math.max(this.#terms.heartbeatMs / 4, 5))
  }

  letGo(names: readonly string[]): void {
    for (const name of names) this.#held.delete(name)
    if (this.#held.size === 0) this.stop()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#held.clear()
  }

  /** The verdict first: a beat that hangs in a black hole must not delay it. */
  #tick(): void {
    const now = monotonicMs()
    const over = [...this.#held].filter(([, { renewedAt }]) => safeUntil(renewedAt, this.#terms) <= now).map(([name]) => name)
    if (over.length > 0) this.#lose(over, 'not_renewed')
    if (now >= this.#nextBeatAt && !this.#beating && this.#held.size > 0 && !this.#isHung()) void this.#beatAll(now)
  }

  async #beatAll(sentAt: number): Promise<void> {
    this.#beating = true
    this.#nextBeatAt = sentAt + this.#terms.heartbeatMs
    // What was claimed just now has most of its lease before it, and is most likely done before the next beat.
    const due = [...this.#held.values()].filter(({ renewedAt }) => sentAt - renewedAt >= this.#terms.heartbeatMs / 2)
    try {
      for (let at = 0; at < due.length; at += BATCH) await this.#beatSome(due.slice(at, at + BATCH), monotonicMs())
    } catch (error) {
      this.#nextBeatAt = monotonicMs() + Math.min(this.#terms.heartbeatMs, 1000) // Sooner than usual: the time left is shorter than usual.
      this.#events.missed?.(error)
    } finally {
      this.#beating = false
    }
  }

  async #beatSome(entries: readonly Entry[], sentAt: number): Promise<void> {
    const { lost, cancelled } = await this.#beat(entries.map(({ of }) => of))
    const isOurs = (entry: Entry) => this.#held.get(nameOf(entry.of)) === entry // Not let go meanwhile, nor taken anew.
    const [gone, kept] = [entries.filter(({ of }) => lost.has(of)).filter(isOurs), entries.filter(({ of }) => !lost.has(of)).filter(isOurs)]
    for (const entry of kept) entry.renewedAt = sentAt
    if (kept.length > 0) this.#events.renewed?.(kept.map(({ of }) => nameOf(of)))
    const stopping = kept.filter(({ of }) => cancelled.has(of))
    if (stopping.length > 0) this.#events.cancelled?.(stopping.map(({ of }) => nameOf(of)))
    if (gone.length > 0) this.#lose(gone.map(({ of }) => nameOf(of)), 'taken')
  }

  #lose(names: readonly string[], reason: LossReason): void {
    this.letGo(names)
    this.#events.lost(names, reason)
  }
}

/** The runs in hand: those that wait for a handler, and those that have one. */
import { monotonicMs } from '../heart.ts'
import { MOST_PREFETCHED, Rate } from './rate.ts'
import type { PerformEnd } from './perform.ts'
import type { WorkRun } from './work-run.ts'

/** Done and not yet recorded: beyond this no further one is begun, so that a database that is away does not fill the memory. */
const MOST_UNRECORDED = 2 * MOST_PREFETCHED

/** What waits for longer is given back: the handlers have become slow, and others could do it. */
const PATIENCE_MS = 2_000

export interface SlotsParts {
  readonly concurrency: number
  /** Never rejects. */
  perform(run: WorkRun): Promise<PerformEnd>
  unrecorded(): number
  /** There may be room for more. */
  roomMade(): void
}

export class Slots {
  readonly #parts: SlotsParts
  readonly #rate = new Rate()
  readonly #active = new Set<WorkRun>()
  #waiting: WorkRun[] = []
  #next = 0
  #since = 0
  #closed = false
  #whenEmpty: (() => void)[] = []
  abandoned = 0

  constructor(parts: SlotsParts) {
    this.#parts = parts
  }

  get active(): ReadonlySet<WorkRun> {
    return this.#active
  }

  get queued(): number {
    return this.#waiting.length - this.#next
  }

  /** How many to fetch: for the free slots, and a second of work ahead once half of that is used up. */
  get wanted(): number {
    if (this.#closed || this.#parts.unrecorded() >= MOST_UNRECORDED) return 0
    const ahead = this.#rate.ahead()
    if (this.queued > ahead / 2) return 0
    return Math.max(0, this.#parts.concurrency - this.#active.size + ahead - this.queued)
  }

  add(runs: readonly WorkRun[]): void {
    if (runs.length === 0) return
    if (this.queued === 0) this.#since = monotonicMs()
    this.#waiting = [...this.#waiting.slice(this.#next), ...runs]
    this.#next = 0
    this.pump()
  }

  /** Begins what there are slots for. */
  pump(): void {
    while (!this.#closed && this.queued > 0 && this.#active.size < this.#parts.concurrency && this.#parts.unrecorded() < MOST_UNRECORDED) {
      const run = this.#waiting[this.#next++]!
      this.#since = monotonicMs()
      if (!run.isLost) void this.#begin(run)
    }
  }

  /** Takes out what has waited too long, to be given back. */
  takeStale(): WorkRun[] {
    if (this.queued === 0 || monotonicMs() - this.#since < PATIENCE_MS) return []
    this.#rate.forget()
    return this.#takeWaiting()
  }

  /** No more is begun. @returns what was not begun */
  close(): WorkRun[] {
    this.#closed = true
    return this.#takeWaiting()
  }

  /** Resolves when no handler is at work. */
  async idle(): Promise<void> {
    if (this.#active.size > 0) await new Promise<void>((resolve) => this.#whenEmpty.push(resolve))
  }

  #takeWaiting(): WorkRun[] {
    const waiting = this.#waiting.slice(this.#next)
    this.#waiting = []
    this.#next = 0
    return waiting
  }

  async #begin(run: WorkRun): Promise<void> {
    this.#active.add(run)
    this.#rate.begin()
    if ((await this.#parts.perform(run)) === 'abandoned') this.abandoned++
    this.#active.delete(run)
    this.#rate.end(this.#active.size === 0)
    this.pump()
    if (this.#active.size === 0) for (const resolve of this.#whenEmpty.splice(0)) resolve()
    if (this.queued === 0 || this.wanted > 0) this.#parts.roomMade()
  }
}

/** How many runs this worker does in a second, and so how many it may take before it needs them. */
import { monotonicMs } from '../heart.ts'

/** More than a statement's worth helps nobody. */
export const MOST_PREFETCHED = 2000
/** A second of work: a crash, or a job that turns out slow, holds no more than that. */
const AHEAD_MS = 1_000
/** What is older counts half. */
const WINDOW_MS = 1_000

export class Rate {
  #done = 0
  #busyMs = 0
  #busySince: number | null = null

  /** Handlers are at work from now on. */
  begin(): void {
    this.#busySince ??= monotonicMs()
  }

  /** One is over; `idle`: none is at work any more. */
  end(idle: boolean): void {
    this.#done++
    if (!idle || this.#busySince === null) return
    this.#busyMs += monotonicMs() - this.#busySince
    this.#busySince = null
  }

  /** How many to have in hand beside those at work. */
  ahead(): number {
    const now = monotonicMs()
    const busyMs = this.#busyMs + (this.#busySince === null ? 0 : now - this.#busySince)
    const ahead = busyMs <= 0 ? 0 : Math.floor((this.#done / busyMs) * AHEAD_MS)
    if (busyMs > WINDOW_MS) {
      this.#done /= 2
      this.#busyMs = busyMs / 2
      if (this.#busySince !== null) this.#busySince = now
    }
    return Math.min(ahead, MOST_PREFETCHED)
  }

  forget(): void {
    this.#done = 0
    this.#busyMs = 0
    if (this.#busySince !== null) this.#busySince = monotonicMs()
  }
}

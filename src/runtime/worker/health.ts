/** What a worker says of itself: it never goes on living while doing nothing without saying so. */
import { errorText } from '../ending.ts'
import { monotonicMs } from '../heart.ts'

/** `connected`: the database answers. `degraded`: it does not, an answer is overdue, or nothing can be written; the worker keeps trying. */
export type WorkerState = 'starting' | 'connected' | 'degraded' | 'stopping' | 'stopped'

export interface WorkerStatus {
  readonly state: WorkerState
  /** What is wrong, while degraded. */
  readonly problem: string | null
  /** Handlers at work. */
  readonly active: number
  /** Runs in our hands that wait for a handler. */
  readonly queued: number
  /** Done, and not yet recorded. */
  readonly unrecorded: number
  /** Handlers that went on after their time or their lease was over: they hold no run any more. */
  readonly abandoned: number
  readonly completed: number
  readonly failed: number
}

type Proof = 'read' | 'write'

/** A question that is not answered for so long is a sign. */
const OVERDUE_MS = 5_000

export class Health {
  readonly #changed: (state: 'connected' | 'degraded', problem: string | null) => void
  readonly #asked = new Set<{ readonly at: number }>()
  /** A server that is read-only answers every question that only reads. */
  readonly #problems: Record<Proof, string | null> = { read: null, write: null }
  #answered = false

  constructor(changed: (state: 'connected' | 'degraded', problem: string | null) => void) {
    this.#changed = changed
  }

  /**
   * Watches one question to the database; what it throws is thrown on.
   * @param proves `read` when it may be answered without anything having been written
   */
  async ask<T>(question: () => Promise<T>, proves: Proof = 'write'): Promise<T> {
    const asked = { at: monotonicMs() }
    this.#asked.add(asked)
    try {
      const answer = await question()
      this.#say(proves, null)
      return answer
    } catch (error) {
      this.#say(proves, errorText(error).split('\n')[0]!)
      throw error
    } finally {
      this.#asked.delete(asked)
    }
  }

  get state(): 'starting' | 'connected' | 'degraded' {
    if (this.problem !== null) return 'degraded'
    return this.#answered ? 'connected' : 'starting'
  }

  get problem(): string | null {
    if (this.#said !== null) return this.#said
    const oldest = Math.min(...[...this.#asked].map(({ at }) => at))
    const waited = monotonicMs() - oldest
    return waited > OVERDUE_MS ? `the database has not answered for ${Math.round(waited / 1000)} s` : null
  }

  get #said(): string | null {
    return this.#problems.read ?? this.#problems.write
  }

  #say(proved: Proof, problem: string | null): void {
    const before = this.#said
    this.#problems[proved] = problem
    if (proved === 'write' && problem === null) this.#problems.read = null
    const now = this.#said
    const isNews = now === null ? !this.#answered || before !== null : before !== now // Cut off at first, and then read-only.
    this.#answered ||= now === null
    if (isNews) this.#changed(now === null ? 'connected' : 'degraded', now)
  }
}

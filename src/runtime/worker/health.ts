/** What a worker says of itself: it never goes on living while doing nothing without saying so. */
import { errorText } from '../ending.ts'
import { monotonicMs } from '../heart.ts'

/** `connected`: the database answers. `degraded`: it does not, or an answer is overdue; the worker keeps trying. */
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

/** A question that is not answered for so long is a sign. */
const OVERDUE_MS = 5_000

export class Health {
  readonly #changed: (state: 'connected' | 'degraded', problem: string | null) => void
  readonly #asked = new Set<{ readonly at: number }>()
  #problem: string | null = null
  #answered = false

  constructor(changed: (state: 'connected' | 'degraded', problem: string | null) => void) {
    this.#changed = changed
  }

  /** Watches one question to the database; what it throws is thrown on. */
  async ask<T>(question: () => Promise<T>): Promise<T> {
    const asked = { at: monotonicMs() }
    this.#asked.add(asked)
    try {
      const answer = await question()
      this.#say(null)
      return answer
    } catch (error) {
      this.#say(errorText(error).split('\n')[0]!)
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
    if (this.#problem !== null) return this.#problem
    const oldest = Math.min(...[...this.#asked].map(({ at }) => at))
    const waited = monotonicMs() - oldest
    return waited > OVERDUE_MS ? `the database has not answered for ${Math.round(waited / 1000)} s` : null
  }

  #say(problem: string | null): void {
    const isNews = problem === null ? !this.#answered || this.#problem !== null : this.#problem === null
    this.#answered ||= problem === null
    this.#problem = problem
    if (isNews) this.#changed(problem === null ? 'connected' : 'degraded', problem)
  }
}

/**
 * Records completions in groups: what came while the last commit was under way goes into the next one. A run counts as
 * completed when its commit is acknowledged, and not before; how many wait for one adapts by itself, without a timer.
 */
import { completeMany, type DoneRun } from '../../store/complete-batch.ts'
import type { Store } from '../../store/tables.ts'
import { RECORDING_PATIENCE_MS, settle } from '../settle.ts'
import type { Health } from './health.ts'

/** One whose result the database refuses would otherwise take the others with it. */
const MOST_A_GROUP = 2000

export interface Completion extends DoneRun {
  /** @param recorded false when the run was not ours any more, or could not be recorded at all (then with the error) */
  readonly closed: (recorded: boolean, error?: unknown) => void
}

export class Completer {
  readonly #store: Store
  readonly #health: Health
  #waiting: Completion[] = []
  #inHand = 0
  #flushing: Promise<void> | null = null

  constructor(store: Store, health: Health) {
    this.#store = store
    this.#health = health
  }

  add(completion: Completion): void {
    this.#waiting.push(completion)
    this.#flushing ??= this.#flushAll()
  }

  /** Not yet acknowledged. */
  get unrecorded(): number {
    return this.#waiting.length + this.#inHand
  }

  /** Resolves when nothing is left to record. */
  async drain(): Promise<void> {
    await this.#flushing
  }

  async #flushAll(): Promise<void> {
    await Promise.resolve() // What is added in the same breath belongs to the same group.
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, MOST_A_GROUP)
      this.#inHand = group.length
      await this.#flush(group)
      this.#inHand = 0
    }
    this.#flushing = null
  }

  async #flush(group: readonly Completion[]): Promise<void> {
    try {
      const lost = await settle(this.#store, RECORDING_PATIENCE_MS, () => this.#health.ask(() => completeMany(this.#store, group)))
      for (const one of group) one.closed(!lost.has(one))
    } catch (error) {
      if (group.length > 1) for (const one of group) await this.#flush([one])
      else group[0]!.closed(false, error)
    }
  }
}

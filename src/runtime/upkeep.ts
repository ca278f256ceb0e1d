/** What keeps a ledger in order over the years: retention, and a look at all of it. */
import type { Finding } from '../model/finding.ts'
import type { Instance } from '../model/run.ts'
import type { Store } from '../store/tables.ts'
import { actorOf } from './actor.ts'
import type { Observer } from './observer.ts'
import { prune, type PrunedTask, type PruneOptions } from './prune.ts'
import { verify, type Verified, type VerifyOptions } from './verify.ts'

export class Upkeep {
  readonly #store: Store
  readonly #patienceMs: number
  readonly #instance: Instance
  readonly #observer: Observer

  /** Use ledger.upkeep. */
  constructor(store: Store, patienceMs: number, instance: Instance, observer: Observer) {
    this.#store = store
    this.#observer = observer
    this.#patienceMs = patienceMs
    this.#instance = instance
  }

  /**
   * Takes finished runs away that ended long ago, with their attempts, conflicts and effects, in short transactions
   * beside running work; a task at a time, as it is done. A window that went never runs again, fences go on growing, and
   * of each task the newest windows and the newest completed run stay. So do runs with an effect in doubt, effects with a
   * business key, and runs under a key of the caller's unless `keyed` says otherwise. Any number may prune at once, and
   * one that was stopped is simply started again.
   * @throws INVALID_OPTION, DATABASE_UNAVAILABLE
   */
  async *prune(options: PruneOptions): AsyncGenerator<PrunedTask> {
    for await (const task of prune(this.#store, this.#patienceMs, actorOf(this.#instance, options.by), options)) {
      const { kept: _, prunedBefore, ...counts } = task
      if (!options.dryRun) this.#observer.tell('prune', { ...counts, prunedBefore: prunedBefore?.toISOString() })
      yield task
    }
  }

  /**
   * Reads every row and tells which promise it contradicts, one finding at a time; returns how much it has read. It
   * changes nothing, and what goes on meanwhile is no finding. @throws INVALID_OPTION, DATABASE_UNAVAILABLE
   */
  verify(options: VerifyOptions = {}): AsyncGenerator<Finding, Verified> {
    return verify(this.#store, this.#patienceMs, options)
  }
}

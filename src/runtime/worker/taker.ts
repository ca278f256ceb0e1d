/** Takes runs out of the queues for a worker, and gives back what it took without hearing of it. */
import { nameOf, type Instance } from '../../model/run.ts'
import { heldRuns } from '../../store/held-runs.ts'
import type { Place } from '../../store/ready-rows.ts'
import { releaseMany } from '../../store/release-batch.ts'
import type { Store } from '../../store/tables.ts'
import { takeBatch, type TakenRun } from '../../store/take-batch.ts'
import { monotonicMs } from '../heart.ts'
import type { Health } from './health.ts'

export interface TakerParts {
  readonly store: Store
  readonly health: Health
  readonly instance: Instance
  readonly tasks: readonly string[]
  readonly leaseSeconds: number
  /** Whether a run of this name is in the worker's hands. */
  holds(name: string): boolean
}

export interface InHand {
  readonly runs: readonly TakenRun[]
  /** When the claim was sent, by monotonicMs(). */
  readonly claimedAt: number
  /** Whether there may be more. */
  readonly more: boolean
}

/** Of its time a worker spends at most one part in so many on claims from the front of a line. */
const FRONT_EVERY = 10

export class Taker {
  readonly #parts: TakerParts
  /** How far the last claim of a queue went: the next goes on there, not past all that was taken and that a snapshot keeps in the index. */
  readonly #places = new Map<string, Place>()
  #frontAgainAt = 0
  /** Names of runs that were lost, and whose rows may still be ours. */
  #lost = new Set<string>()
  /** The answer to a claim did not come. */
  #unsure = false

  constructor(parts: TakerParts) {
    this.#parts = parts
  }

  async take(queue: string, limit: number): Promise<InHand> {
    const { store, health, instance, tasks, leaseSeconds } = this.#parts
    if (this.#unsure) await health.ask(() => this.#giveBackUnseen())
    const claimedAt = monotonicMs()
    this.#unsure = true
    const after = this.#places.get(queue)
    const { runs, seen, last } = await health.ask(() => takeBatch(store, { queue, limit, after, tasks, leaseSeconds, instance }), 'read')
    this.#unsure = false
    if (!after) this.#frontAgainAt = monotonicMs() + FRONT_EVERY * (monotonicMs() - claimedAt)
    this.#places.delete(queue)
    if (last && seen === limit && runs.length > 0) this.#places.set(queue, last)
    return { runs, claimedAt, more: seen === limit || after !== undefined }
  }

  /** Once an interval: the next claims look from the front of their queues again, for what has come up there meanwhile. */
  fromTheFront(): void {
    if (monotonicMs() >= this.#frontAgainAt) this.#places.clear()
  }

  /** It was in our hands, and perhaps begun: that attempt counts, and its lease runs out. */
  lose(name: string): void {
    this.#lost.add(name)
  }

  async #giveBackUnseen(): Promise<void> {
    const { store, instance, tasks, holds } = this.#parts
    const ours = await heldRuns(store, instance.id)
    const unseen = ours.filter((run) => !holds(nameOf(run)) && !this.#lost.has(nameOf(run)))
    this.#lost = new Set(ours.map(nameOf).filter((name) => this.#lost.has(name)))
    await releaseMany(store, unseen.filter((run) => tasks.includes(run.task)))
  }
}

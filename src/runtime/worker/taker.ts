/** Takes runs out of the queues for a worker, and gives back what it took without hearing of it. */
import { nameOf, type Instance } from '../../model/run.ts'
import { heldRuns } from '../../store/held-runs.ts'
import type { Place } from '../../store/ready-rows.ts'
import { releaseMany } from '../../store/release-batch.ts'
import type { Store } from '../../store/tables.ts'
import { takeBatch, type TakenRun, type TakeRequest } from '../../store/take-batch.ts'
import { takeFirst } from '../../store/take-first.ts'
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

interface Claimed {
  readonly runs: readonly TakenRun[]
  /** Whether there may be more. */
  readonly more: boolean
}

export interface InHand extends Claimed {
  /** When the claim was sent, by monotonicMs(). */
  readonly claimedAt: number
}

/** Of its time a worker spends at most one part in so many on claims from the front of a line. */
const FRONT_EVERY = 10

/** Out of a line that was empty so many runs are taken singly, which is the soonest; if there are more, it is no trickle. */
const SINGLES = 3

export class Taker {
  readonly #parts: TakerParts
  /** How far the last claim of a queue went: the next goes on there, not past all that was taken and that a snapshot keeps in the index. */
  readonly #places = new Map<string, Place>()
  #frontAgainAt = 0
  /** How many more come singly, by queue. */
  readonly #singles = new Map<string, number>()
  /** Names of runs that were lost, and whose rows may still be ours. */
  #lost = new Set<string>()
  /** The answer to a claim did not come. */
  #unsure = false

  constructor(parts: TakerParts) {
    this.#parts = parts
  }

  async take(queue: string, limit: number): Promise<InHand> {
    const { health, instance, tasks, leaseSeconds } = this.#parts
    if (this.#unsure) await health.ask(() => this.#giveBackUnseen())
    const claimedAt = monotonicMs()
    this.#unsure = true
    const request = { queue, limit, after: this.#places.get(queue), tasks, leaseSeconds, instance }
    const taken = (await this.#takeSingle(request)) ?? (await this.#takeTogether(request, claimedAt))
    this.#unsure = false
    return { ...taken, claimedAt }
  }

  async #takeTogether(request: TakeRequest, claimedAt: number): Promise<Claimed> {
    const { queue, limit, after } = request
    const { runs, seen, last } = await this.#parts.health.ask(() => takeBatch(this.#parts.store, request), 'read')
    const isEnd = seen < limit
    if (!after) this.#frontAgainAt = monotonicMs() + FRONT_EVERY * (monotonicMs() - claimedAt)
    const [place, goesOn] = [last ?? after, isEnd ? after !== undefined && monotonicMs() < this.#frontAgainAt : runs.length > 0]
    if (place && goesOn) this.#places.set(queue, place)
    else this.#places.delete(queue)
    if (isEnd && runs.every((run) => run.concurrencyKey === null)) this.#singles.set(queue, SINGLES)
    return { runs, more: !isEnd || (after !== undefined && !goesOn) }
  }

  /** @returns null when the next of this queue are to be taken together */
  async #takeSingle(request: TakeRequest): Promise<Claimed | null> {
    const { store, health } = this.#parts
    const left = this.#singles.get(request.queue) ?? 0
    if (left === 0 || request.after || !store.updatesInOne) return null
    const taken = await health.ask(() => takeFirst(store, request), 'read')
    this.#singles.set(request.queue, taken === null ? 0 : taken.seen === 0 ? SINGLES : left - 1)
    return taken && { runs: taken.runs, more: taken.seen === 1 }
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

/** The job of the proof in queue mode: much shorter than a launched one, and closed by its worker after the handler's last word. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { WorkerEvent, WorkRun } from '../index.ts'
import type { Asked, Facts } from './history.ts'
import { die, labour, mail, writeBehindFence, type Scene } from './job.ts'
import { weighted } from './random.ts'
import { scopeOfQueued, type QueuedTask } from './worker-spec.ts'

export class QueueJobs {
  readonly #scene: Scene
  readonly #instance: () => string
  /** What a handler has asked for by its last word, until the worker says what became of it. */
  readonly #asked = new Map<WorkRun, Asked>()

  /** @param instance of the worker */
  constructor(scene: Scene, instance: () => string) {
    this.#scene = scene
    this.#instance = instance
  }

  async perform(task: QueuedTask, nth: number, run: WorkRun): Promise<unknown> {
    const { spec, history, witness, random } = this.#scene
    const who: Facts = { key: run.taskKey, task: run.task, attempt: run.attempt, fence: String(run.fence), instance: this.#instance(), worker: spec.name }
    const { scope, limit } = scopeOfQueued(task, nth)
    history.seen('taken', { ...who, scope, limit, leaseMs: spec.leaseMs, provable: !spec.elsewhere, maxAttempts: run.maxAttempts })
    witness.seen('start', who)
    const dies = random() < spec.deathChance ? Math.floor(random() * 3) : null
    if (random() < 0.1 || dies === 0) await mail(this.#scene, run.claim, who, dies === 0)
    if (random() < 0.3 || dies === 1) await labour(this.#scene, run.claim, who)
    if (dies === 1) die()
    if (random() < 0.15) await writeBehindFence(this.#scene, limit === 1 ? scope : run.taskKey, run.claim, who)
    if (dies === 2) die()
    return this.#end(run, who)
  }

  /** The worker says what it recorded. */
  heard(event: WorkerEvent): void {
    const { history } = this.#scene
    if (event.event === 'degraded') history.seen('degraded', { problem: event.problem })
    if (!('run' in event) || event.event === 'started') return
    const asked = this.#asked.get(event.run)
    this.#asked.delete(event.run)
    if (event.event === 'completed') asked?.returned()
    if (event.event === 'failed') asked?.returned({ retried: event.retryInMs !== null })
    // When the worker itself takes a run for lost, it has asked nobody.
    if (event.event === 'lost' && event.error !== event.run.signal.reason) asked?.failed(event.error)
  }

  async #end(run: WorkRun, who: Facts): Promise<unknown> {
    const { spec, history, random } = this.#scene
    const holds = spec.holdMs > 0 && random() < spec.holdChance
    const end = holds ? 'hold' : weighted(random, [['return', 70], ['result', 10], ['throw', 9], ['transaction', 5], ['complete', 3], ['release', 3]] as const)
    if (end === 'return' || end === 'result') {
      this.#asked.set(run, history.begin('complete', who))
      return end === 'result' ? { by: run.attempt } : undefined
    }
    if (end === 'hold') history.seen('held')
    if (end !== 'throw') {
      const asks = { complete: () => run.claim.complete(), release: () => run.claim.release(), transaction: () => run.transaction(async () => {}), hold: () => run.transaction(() => sleep(spec.holdMs)) }
      const answer = await history.act(end === 'release' ? 'release' : 'complete', who, asks[end])
      if (answer.end === 'returned') return undefined
    }
    this.#asked.set(run, history.begin('fail', who))
    throw new Error('bad luck')
  }
}

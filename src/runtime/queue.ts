/** Queue mode as a program holds it: enqueues runs, and makes workers. */
import { durationMs, type Duration } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import { leaseTerms } from '../model/lease.ts'
import { checkQueueName, checkTaskName } from '../model/names.ts'
import type { Instance } from '../model/run.ts'
import type { StandardSchema } from '../model/standard-schema.ts'
import type { PayloadOf, ResultOf, Schemas, TaskName } from '../model/tasks.ts'
import { DEFAULT_QUEUE } from '../store/line.ts'
import { probeWrite } from '../store/probe-write.ts'
import type { ReapedRun } from '../store/reap.ts'
import type { Store } from '../store/tables.ts'
import { enqueueAll, type Enqueued, type EnqueueTerms } from './enqueue.ts'
import type { Observer } from './observer.ts'
import type { Pacemaker } from './pacemaker.ts'
import { Plan, type EnqueueOptions } from './plan.ts'
import { settle } from './settle.ts'
import type { WorkerEvent } from './worker/events.ts'
import type { Handler } from './worker/perform.ts'
import { Worker } from './worker/worker.ts'

export interface WorkerOptions<Tasks> {
  /** What does the work, by task. */
  readonly handlers: { readonly [Name in TaskName<Tasks>]?: Handler<PayloadOf<Tasks, Name>, ResultOf<Tasks, Name>> }
  /** Default `['default']`. Of several queues each gets its turn. */
  readonly queues?: readonly string[]
  /** Handlers at work at the same time. Default 10. */
  readonly concurrency?: number
  /** How long a claim lasts without a heartbeat. Default 60 s. */
  readonly lease?: Duration
  /** How often a worker that hears nothing asks. Default 1 s. */
  readonly poll?: Duration
  /** For runs that were enqueued without one. */
  readonly timeout?: Duration
  /** How long stop() lets handlers finish before it aborts their signals. Default 30 s. */
  readonly stopTimeout?: Duration
  /** After its signal aborted, a handler has this long to end by itself; then it holds its slot and its run no more. Default 5 s. */
  readonly grace?: Duration
  /** An event loop that is blocked for longer counts as hung: its runs are renewed no more, and others take them. Default 10 min. */
  readonly hungAfter?: Duration
  /** Hears what becomes of every run, and how the worker is. */
  readonly onEvent?: (event: WorkerEvent) => void
}

export interface QueueParts<Tasks> {
  readonly store: Store
  readonly observer: Observer
  readonly patienceMs: number
  readonly schemas: Schemas<Tasks>
  readonly pacemaker: Pacemaker
  /** Opens the connections of a worker. */
  openWorkerStore(): Promise<Store>
  /** A new one for each worker. */
  newInstance(): Instance
  reap(): Promise<ReapedRun[]>
}

const MAX_CONCURRENCY = 10_000

export class Queue<Tasks> {
  readonly #parts: QueueParts<Tasks>
  readonly #workers = new Set<Worker>()

  constructor(parts: QueueParts<Tasks>) {
    this.#parts = parts
  }

  async enqueue(task: string, runs: readonly EnqueueOptions[], terms: EnqueueTerms): Promise<Enqueued[]> {
    const { store, patienceMs } = this.#parts
    const plan = new Plan(task, runs)
    // The workers of this very process need no database to hear of it.
    const hint = (queue: string) => this.#workers.forEach((worker) => worker.hint(queue))
    return runs.length === 0 ? [] : enqueueAll(store, patienceMs, plan, this.#schemaOf(task), terms, hint)
  }

  async worker({ handlers, queues = [DEFAULT_QUEUE], concurrency = 10, lease, poll = '1s', timeout, stopTimeout = '30s', grace = '5s', hungAfter = '10m', onEvent = () => {} }: WorkerOptions<Tasks>): Promise<Worker> {
    if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > MAX_CONCURRENCY) throw invalidOption('concurrency', `must be a whole number from 1 to ${MAX_CONCURRENCY}, got ${String(concurrency)}`)
    if (queues.length === 0) throw invalidOption('queues', 'must name at least one')
    const { patienceMs, pacemaker, observer } = this.#parts
    const checked = {
      handlers: this.#checkHandlers(handlers),
      queues: [...new Set(queues.map(checkQueueName))],
      lease: leaseTerms(lease),
      pollMs: durationMs('poll', poll),
      timeoutMs: timeout === undefined ? null : durationMs('timeout', timeout),
      stopTimeoutMs: durationMs('stop-timeout', stopTimeout, { zero: true }),
      graceMs: durationMs('grace', grace, { zero: true }),
      hungAfterMs: durationMs('hung-after', hungAfter),
    }
    const store = await this.#parts.openWorkerStore()
    try {
      await settle(store, patienceMs, () => probeWrite(store))
    } catch (error) {
      await store.close().catch(() => {}) // What went wrong first is what counts.
      throw error
    }
    const worker: Worker = new Worker({
      ...checked, store, handlerStore: this.#parts.store, observer, pacemaker, concurrency, patienceMs,
      instance: this.#parts.newInstance(),
      reap: () => this.#parts.reap(),
      closeStore: async () => {
        this.#workers.delete(worker)
        await store.close()
      },
      tell: onEvent,
    })
    this.#workers.add(worker)
    return worker
  }

  /** Stops what is still at work. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()))
  }

  #checkHandlers(handlers: WorkerOptions<Tasks>['handlers']) {
    const checked = new Map<string, { handler: Handler; schema: StandardSchema | undefined }>()
    for (const [task, handler] of Object.entries<Handler | undefined>(handlers)) {
      if (typeof handler !== 'function') throw invalidOption('handlers', `the handler of ${JSON.stringify(task)} is not a function`)
      checked.set(checkTaskName(task), { handler, schema: this.#schemaOf(task) })
    }
    if (checked.size === 0) throw invalidOption('handlers', 'must name at least one task')
    return checked
  }

  #schemaOf(task: string): StandardSchema | undefined {
    const { schemas } = this.#parts
    return Object.hasOwn(schemas, task) ? schemas[task as TaskName<Tasks>] : undefined
  }
}

/** The ledger as a program holds it: claims and runs jobs, reaps lost owners, reads the history. */
import { durationMs } from '../model/duration.ts'
import type { ClaimRef } from '../model/claim-ref.ts'
import { LedgerError } from '../model/errors.ts'
import type { Conflict } from '../model/outcome.ts'
import type { HistoryLine, Instance, Run } from '../model/run.ts'
import type { AnyTasks, PayloadOf, Schemas, TaskName } from '../model/tasks.ts'
import { listRuns, readHistory, type RunFilter } from '../store/list-runs.ts'
import { readRun } from '../store/read-run.ts'
import { dueRuns } from '../store/recover.ts'
import { reap, type ReapedRun } from '../store/reap.ts'
import type { Store } from '../store/tables.ts'
import { acquire, acquiredTold, isDead, type Acquired, type Queued } from './acquire.ts'
import { Claim } from './claim.ts'
import { Effects } from './effects.ts'
import type { Enqueued, EnqueueTerms } from './enqueue.ts'
import { Fences } from './fences.ts'
import { monotonicMs } from './heart.ts'
import { checkInstanceId, newInstance } from './instance.ts'
import { planLaunch, type Launch, type PlannedLaunch } from './launch.ts'
import { heldElsewhere } from './held-elsewhere.ts'
import type { LedgerOptions } from './ledger-options.ts'
import { keepWhileAlive, type KeepEnd, type KeepEvents } from './keep.ts'
import { Observer } from './observer.ts'
import { Operator } from './operator.ts'
import { observerOf, openReady, pacemakerOf, workerStoreOf } from './open-ready.ts'
import type { Pacemaker } from './pacemaker.ts'
import type { EnqueueOptions } from './plan.ts'
import { Queue, type WorkerOptions } from './queue.ts'
import { settle } from './settle.ts'
import { Tasks } from './tasks.ts'
import { Upkeep } from './upkeep.ts'
import type { Worker } from './worker/worker.ts'

/** Which run, and which window it accounts for. */
export type RunRef = Pick<Run, 'taskKey' | 'task' | 'windowStart' | 'windowEnd' | 'windowZone'>

export interface Completed<T> {
  readonly status: 'completed'
  readonly taskKey: string
  readonly attempt: number
  /** What the handler returned. */
  readonly value: T
}

export class Ledger<TaskMap = AnyTasks> {
  /** This start of this process, as it stands in the rows of its runs. */
  readonly instance: Instance
  /** The effects of all runs, and the operator's word on those in doubt. */
  readonly effects: Effects
  /** Fences at protected resources. */
  readonly fences: Fences
  /** What a person does to runs and tasks. */
  readonly operator: Operator
  /** What is known of tasks, and which of their windows should have run. */
  readonly tasks: Tasks
  /** What keeps the ledger in order over the years. */
  readonly upkeep: Upkeep
  readonly #store: Store
  readonly #pacemaker: Pacemaker
  readonly #patienceMs: number
  readonly #options: LedgerOptions<TaskMap>
  readonly #queue: Queue<TaskMap>
  readonly #observer: Observer
  /**
   * When the database was last reached again after it could not be; the reaper gives everybody a lease from then on.
   * Infinity while that is still to come: the next pass that gets through sets it.
   */
  #reachedAgainAt: number | undefined

  /** Use openLedger. @param sawOutage the database could not be reached at first */
  constructor(store: Store, pacemaker: Pacemaker, patienceMs: number, options: LedgerOptions<TaskMap>, sawOutage = false, helpers: readonly number[] = [], openWorkerStore: () => Promise<Store> = async () => ({ ...store, close: async () => {} }), observer = new Observer(options.logger)) {
    this.#store = store
    this.#observer = observer
    this.#pacemaker = pacemaker
    this.#patienceMs = patienceMs
    this.#options = options
    this.instance = newInstance(options.instanceId, helpers, options.owner)
    this.effects = new Effects(store, patienceMs)
    this.fences = new Fences(store, patienceMs)
    this.operator = new Operator(store, patienceMs, this.instance)
    this.tasks = new Tasks(store, patienceMs, this.instance)
    this.upkeep = new Upkeep(store, patienceMs, this.instance, observer)
    const { schemas = {} as Schemas<TaskMap>, owner } = options
    this.#queue = new Queue({ observer, store, patienceMs, schemas, pacemaker, openWorkerStore, newInstance: () => newInstance(undefined, helpers, owner), reap: () => this.reap() })
    if (sawOutage) this.#reachedAgainAt = Infinity
  }

  /** Where the ledger is, for people. Never a password. */
  get place(): string {
    return this.#store.place
  }

  /**
   * Claims the run that the launch names. A claim is renewed in the background until it is closed; a conflict is
   * recorded, and so is a queued window. Nothing may be started without a claim.
   * @throws INVALID_OPTION, DATABASE_UNAVAILABLE
   */
  async claim(launch: Launch): Promise<Claim | Conflict | Queued> {
    const plan = planLaunch(launch, this.instance)
    const outcome = await this.#acquire(plan)
    this.tasks.mention(launch)
    return 'claimed' in outcome ? this.#claimed(plan, outcome) : outcome
  }

  /**
   * Claims, runs the handler and records how it ended. What the handler throws is recorded and thrown on.
   * @throws LEASE_LOST when the run was no longer ours at the end: then its result is not recorded
   */
  async run<T>(launch: Launch, handler: (claim: Claim) => Promise<T> | T): Promise<Completed<T> | Conflict | Queued> {
    const claim = await this.claim(launch)
    if (claim.status !== 'claimed') return claim
    let value: T
    try {
      value = await claim.within(async () => handler(claim))
    } catch (error) {
      // When the run is not ours any more, that is what the caller must hear, with the handler's own error behind it.
      await claim.fail(error).catch((unrecorded: Error) => Promise.reject(Object.assign(unrecorded, { cause: error })))
      throw error
    }
    await claim.complete()
    return { status: 'completed', taskKey: claim.taskKey, attempt: claim.attempt, value }
  }

  /**
   * Pending runs of a task whose time has come (retries, recovered and queued runs), the oldest window first. Attempts
   * of the task whose owner is gone are closed before, so that no launch has to wait for a reaper.
   */
  async due(task: string, limit = 100): Promise<Run[]> {
    return this.#read(() => dueRuns(this.#store, task, isDead, limit))
  }

  /**
   * Claims a run that is already in the ledger, under its own key and window, with the other terms of the launch. That
   * somebody else was quicker is no lost window, so a conflict here is returned and not recorded.
   */
  async takeUp(run: RunRef, launch: Launch): Promise<Claim | Conflict> {
    const planned = planLaunch({ ...launch, task: run.task, window: undefined, key: 'known' }, this.instance)
    const { windowStart: start, windowEnd: end, windowZone: zone } = run
    const plan: PlannedLaunch = { ...planned, overlap: 'skip', request: { ...planned.request, taskKey: run.taskKey, window: start && end && zone !== null ? { start, end, zone } : null, isKnown: true } }
    const outcome = await this.#acquire(plan)
    return 'claimed' in outcome ? this.#claimed(plan, outcome) : (outcome as Conflict)
  }

  /**
   * Goes on with a claim that another process holds (see claimFromEnv): effects, transactions, closing. That process
   * goes on renewing the lease, or the caller does by `heartbeat()`; `signal` never aborts here. Nothing is asked or written.
   */
  resume(ref: ClaimRef): Claim {
    return new Claim({ ...heldElsewhere(ref), store: this.#store, observer: this.#observer, instance: this.instance, patienceMs: this.#patienceMs })
  }

  /**
   * Renews the lease of a claim while process `pid` of this host lives, and returns why that ended.
   * @throws INVALID_OPTION when there is no such process, DATABASE_UNAVAILABLE
   */
  async keep(ref: ClaimRef, pid: number, events: KeepEvents = {}): Promise<KeepEnd> {
    return keepWhileAlive(this.#store, this.#pacemaker, this.#patienceMs, ref, pid, events)
  }

  /**
   * Closes every attempt whose lease has run out: back to pending with attempts left, failed as `lost` without. Any
   * number may reap at once. After an outage that this ledger saw, owners get one whole lease to come back first.
   */
  async reap(): Promise<ReapedRun[]> {
    try {
      return await settle(this.#store, this.#patienceMs, async (uncertain) => {
        if (uncertain || this.#reachedAgainAt === Infinity) this.#reachedAgainAt = monotonicMs()
        const grace = this.#reachedAgainAt === undefined ? Infinity : (monotonicMs() - this.#reachedAgainAt) / 1000
        const reaped = await reap(this.#store, grace)
        for (const one of reaped) this.#observer.tell('reap', reapedTold(one))
        return reaped
      })
    } catch (error) {
      this.#reachedAgainAt = Infinity
      throw error
    }
  }

  /**
   * Puts a run in line for a worker. A key that is there already, in whatever state, is a duplicate: a value, and nothing
   * is changed. With `tx` it is part of what the caller's transaction commits. @throws INVALID_OPTION, DATABASE_UNAVAILABLE
   */
  async enqueue<Name extends TaskName<TaskMap>>(task: Name, run: EnqueueOptions<PayloadOf<TaskMap, Name>> = {}, terms: EnqueueTerms = {}): Promise<Enqueued> {
    return (await this.#queue.enqueue(task, [run], terms))[0]!
  }

  /** As many as you like, all of them or none, in one transaction. @returns what became of each, in order */
  async enqueueMany<Name extends TaskName<TaskMap>>(task: Name, runs: readonly EnqueueOptions<PayloadOf<TaskMap, Name>>[], terms: EnqueueTerms = {}): Promise<Enqueued[]> {
    return this.#queue.enqueue(task, runs, terms)
  }

  /** Starts a worker, which goes on until `stop()`, through outages and all. @throws INVALID_OPTION, DATABASE_UNAVAILABLE */
  async worker(options: WorkerOptions<TaskMap>): Promise<Worker> {
    return this.#queue.worker(options)
  }

  /** The newest runs first. */
  async runs(filter: Partial<RunFilter> = {}): Promise<Run[]> {
    return this.#read(() => listRuns(this.#store, { limit: 50, ...filter }))
  }

  /** One run and everything that happened to its key, in order. @throws RUN_NOT_FOUND */
  async show(taskKey: string): Promise<{ run: Run | null; history: HistoryLine[] }> {
    return this.#read(async () => {
      const [run, history] = [await readRun(this.#store, taskKey), await readHistory(this.#store, taskKey)]
      if (run === null && history.length === 0) throw new LedgerError('RUN_NOT_FOUND', `no run and no launch of ${JSON.stringify(taskKey)} is recorded`, { taskKey })
      return { run, history }
    })
  }

  /** Stops the workers, then ends the heartbeats and the connections. Claims still open are lost when their leases run out. */
  async close(): Promise<void> {
    await this.#queue.close()
    await Promise.all([this.#pacemaker.close(), this.tasks.quiet()])
    await this.#store.close()
  }

  #acquire(plan: PlannedLaunch): Promise<Acquired | Conflict | Queued> {
    const { task, taskKey, instance } = plan.request
    return this.#observer.verb('claim', { task, taskKey, instanceId: instance.id }, () => acquire(this.#store, plan, this.#patienceMs), acquiredTold)
  }

  #claimed({ request, lease, retry }: PlannedLaunch, { claimed, claimedAt }: Acquired): Claim {
    const { task, window } = request
    const { instance } = this
    return new Claim({ store: this.#store, observer: this.#observer, pacemaker: this.#pacemaker, claimed, instance, task, window, lease, retry, claimedAt, patienceMs: this.#patienceMs, onHeartbeat: this.#options.onHeartbeatError })
  }

  #read<T>(query: () => Promise<T>): Promise<T> {
    return settle(this.#store, this.#patienceMs, query)
  }
}

/**
 * Opens the ledger in the database at `url`: `postgres://…`, `mysql://…` (MariaDB too) or `sqlite:PATH`. A SQLite file
 * migrates itself; a server's schema must be current (`runledger migrate`).
 * @throws INVALID_OPTION, DATABASE_UNAVAILABLE, SCHEMA_BEHIND, SCHEMA_AHEAD
 */
export async function openLedger<TaskMap = AnyTasks>(url: string, options: LedgerOptions<TaskMap> = {}): Promise<Ledger<TaskMap>> {
  const patienceMs = durationMs('connect-timeout', options.connectTimeout ?? '10s', { zero: true })
  if (options.instanceId !== undefined) checkInstanceId(options.instanceId)
  const { store, sawOutage } = await openReady(url, patienceMs, options.clock)
  return new Ledger<TaskMap>(store, pacemakerOf(url, store, options), patienceMs, options, sawOutage, await options.helpers, workerStoreOf(url, store, patienceMs, options), await observerOf(options))
}

function reapedTold({ run, now }: ReapedRun) {
  const { task, taskKey, attempt, fence, instanceId, host, pid } = run
  return { task, taskKey, attempt, fence, instanceId, host, pid, status: now }
}

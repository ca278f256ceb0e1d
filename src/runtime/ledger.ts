/** The ledger as a program holds it: claims and runs jobs, reaps lost owners, reads the history. */
import type { ClockOffset } from '../dialect/dialect.ts'
import { durationMs, type Duration } from '../model/duration.ts'
import type { ClaimRef } from '../model/claim-ref.ts'
import { LedgerError } from '../model/errors.ts'
import type { Logger } from '../model/event.ts'
import type { Conflict } from '../model/outcome.ts'
import type { HistoryLine, Instance, Run } from '../model/run.ts'
import { listRuns, readHistory, type RunFilter } from '../store/list-runs.ts'
import { readRun } from '../store/read-run.ts'
import { dueRuns } from '../store/recover.ts'
import { reap, type ReapedRun } from '../store/reap.ts'
import type { Store } from '../store/tables.ts'
import { acquire, acquiredTold, isDead, type Acquired, type Queued } from './acquire.ts'
import { Claim } from './claim.ts'
import { Effects } from './effects.ts'
import { Fences } from './fences.ts'
import { monotonicMs } from './heart.ts'
import { checkInstanceId, newInstance } from './instance.ts'
import { planLaunch, type Launch, type PlannedLaunch } from './launch.ts'
import { heldElsewhere } from './held-elsewhere.ts'
import { keepWhileAlive, type KeepEnd } from './keep.ts'
import { Observer } from './observer.ts'
import { openReady } from './open-ready.ts'
import { openHeartStore } from './open-store.ts'
import { InlinePacemaker, type Pacemaker } from './pacemaker.ts'
import { settle } from './settle.ts'
import { openTelemetry } from './telemetry.ts'
import { ThreadedPacemaker } from './threaded-pacemaker.ts'
import { Upkeep } from './upkeep.ts'

export interface LedgerOptions {
  /** How long a database that does not answer is asked again before DATABASE_UNAVAILABLE. Default 10 s. */
  readonly connectTimeout?: Duration
  /**
   * Where heartbeats run: a `thread` of their own (the default), which a handler that blocks the event loop cannot
   * stop, or the `loop` of this thread, for a program that never blocks it.
   */
  readonly heartbeats?: 'thread' | 'loop'
  /** The id of this start of this process, where it had to be known before; a UUIDv7 of its own by default. */
  readonly instanceId?: string
  /** Pids of processes that belong to this instance: it counts as dead only when they are gone too. */
  readonly helpers?: readonly number[] | Promise<readonly number[]>
  /**
   * The process that does the work, where it is not this one: claims are made in its name. `provable` says that it lives
   * as long as the claim is to, so that its death frees the run at once on this host; else the lease alone decides.
   */
  readonly owner?: { readonly pid: number; readonly provable: boolean }
  /** Hears of heartbeats that failed and will be tried again. */
  readonly onHeartbeatError?: (error: unknown) => void
  /** Hears of everything the ledger does: a pino, the console, or anything with their four methods. Facts first. */
  readonly logger?: Logger | undefined
  /** False leaves @opentelemetry/api alone; otherwise it is used where it is installed. */
  readonly telemetry?: boolean
  /** The trace that this process is a part of (W3C Trace Context), for where no span is active. */
  readonly traceparent?: string | undefined
  /** Moves the database's clock as this ledger sees it; for tests. */
  readonly clock?: ClockOffset
}

/** Which run, and which window it accounts for. */
export type RunRef = Pick<Run, 'taskKey' | 'task' | 'windowStart' | 'windowEnd' | 'windowZone'>

export interface Completed<T> {
  readonly status: 'completed'
  readonly taskKey: string
  readonly attempt: number
  /** What the handler returned. */
  readonly value: T
}

export class Ledger {
  /** This start of this process, as it stands in the rows of its runs. */
  readonly instance: Instance
  /** The effects of all runs, and the operator's word on those in doubt. */
  readonly effects: Effects
  /** Fences at protected resources. */
  readonly fences: Fences
  /** What keeps the ledger in order over the years. */
  readonly upkeep: Upkeep
  readonly #store: Store
  readonly #pacemaker: Pacemaker
  readonly #patienceMs: number
  readonly #options: LedgerOptions
  readonly #observer: Observer
  /**
   * When the database was last reached again after it could not be; the reaper gives everybody a lease from then on.
   * Infinity while that is still to come: the next pass that gets through sets it.
   */
  #reachedAgainAt: number | undefined

  /** Use openLedger. @param sawOutage the database could not be reached at first */
  constructor(store: Store, pacemaker: Pacemaker, patienceMs: number, options: LedgerOptions, sawOutage = false, helpers: readonly number[] = [], observer = new Observer(options.logger)) {
    this.#store = store
    this.#observer = observer
    this.#pacemaker = pacemaker
    this.#patienceMs = patienceMs
    this.#options = options
    this.instance = newInstance(options.instanceId, helpers, options.owner)
    this.effects = new Effects(store, patienceMs)
    this.fences = new Fences(store, patienceMs)
    this.upkeep = new Upkeep(store, patienceMs, this.instance, observer)
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
   * @param onKept called once, when the lease has been renewed for the first time
   * @throws INVALID_OPTION when there is no such process, DATABASE_UNAVAILABLE
   */
  async keep(ref: ClaimRef, pid: number, onKept: () => void = () => {}): Promise<KeepEnd> {
    return keepWhileAlive(this.#store, this.#pacemaker, this.#patienceMs, ref, pid, onKept)
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
        for (const { run, now } of reaped) this.#observer.tell('reap', { task: run.task, taskKey: run.taskKey, attempt: run.attempt, fence: run.fence, instanceId: run.instanceId, host: run.host, pid: run.pid, status: now })
        return reaped
      })
    } catch (error) {
      this.#reachedAgainAt = Infinity
      throw error
    }
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

  /** Ends the heartbeats and the connections. Claims still open are lost when their leases run out. */
  async close(): Promise<void> {
    await this.#pacemaker.close()
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
export async function openLedger(url: string, options: LedgerOptions = {}): Promise<Ledger> {
  const patienceMs = durationMs('connect-timeout', options.connectTimeout ?? '10s', { zero: true })
  if (options.instanceId !== undefined) checkInstanceId(options.instanceId)
  const { store, sawOutage } = await openReady(url, patienceMs, options.clock)
  const shared = options.clock !== undefined || /:memory:(\?|$)/.test(url)
  const pacemaker = shared ? new InlinePacemaker(async () => ({ ...store, close: async () => {} })) : options.heartbeats === 'loop' ? new InlinePacemaker(() => openHeartStore(url)) : new ThreadedPacemaker(url)
  const telemetry = options.telemetry === false ? null : await openTelemetry()
  return new Ledger(store, pacemaker, patienceMs, options, sawOutage, await options.helpers, new Observer(options.logger, telemetry, options.traceparent))
}

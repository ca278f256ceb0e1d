/** A worker: claims what is ready in its queues, runs the handlers, records what became of the runs, and stops when told to. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseTerms } from '../../model/lease.ts'
import type { StandardSchema } from '../../model/standard-schema.ts'
import type { Listener } from '../../dialect/dialect.ts'
import type { Instance } from '../../model/run.ts'
import type { ReapedRun } from '../../store/reap.ts'
import { reapGone } from '../../store/reap-gone.ts'
import { releaseMany } from '../../store/release-batch.ts'
import type { Store } from '../../store/tables.ts'
import { freeKeys } from '../../store/complete-batch.ts'
import { isDead } from '../acquire.ts'
import { monotonicMs, type LossReason } from '../heart.ts'
import type { Observer } from '../observer.ts'
import type { Pacemaker, PulseGroup } from '../pacemaker.ts'
import { settle } from '../settle.ts'
import { Completer } from './completer.ts'
import type { Tell, WorkerEvent } from './events.ts'
import { FetchLoop } from './fetch.ts'
import { Health, type WorkerStatus } from './health.ts'
import { perform, type Handler, type PerformEnd, type Performance } from './perform.ts'
import { Slots } from './slots.ts'
import { Taker } from './taker.ts'
import { STOPPING, WorkRun } from './work-run.ts'

export interface WorkerParts {
  /** Connections of the worker's own: handlers that hold all of the ledger's do not stop it. */
  readonly store: Store
  /** What handlers do goes over the ledger's connections. */
  readonly handlerStore: Store
  readonly closeStore: () => Promise<void>
  readonly pacemaker: Pacemaker
  readonly observer: Observer
  readonly instance: Instance
  readonly handlers: ReadonlyMap<string, { readonly handler: Handler; readonly schema: StandardSchema | undefined }>
  readonly queues: readonly string[]
  readonly concurrency: number
  readonly lease: LeaseTerms
  readonly pollMs: number
  readonly stopTimeoutMs: number
  /** How long a handler whose signal has aborted may take to end. */
  readonly graceMs: number
  readonly hungAfterMs: number
  readonly timeoutMs: number | null
  readonly patienceMs: number
  readonly reap: () => Promise<ReapedRun[]>
  readonly tell: Tell
}

/** What is done when the worker stops has this long to be recorded. */
const RECORDING_MS = 10_000
/** After the heartbeats have ended as a whole. */
const PAUSE_MS = 5_000

export class Worker {
  readonly #parts: WorkerParts
  readonly #health: Health
  readonly #completer: Completer
  readonly #slots: Slots
  readonly #taker: Taker
  readonly #loop: FetchLoop
  readonly #group: PulseGroup
  readonly #listener: Listener
  readonly #held = new Map<string, WorkRun>()
  readonly #performances: ReadonlyMap<string, Performance>
  readonly #running: Promise<void>
  #stopping: Promise<void> | undefined
  #hurry: () => void = () => {}
  #isStopped = false
  #pausedUntil = 0
  #completed = 0
  #failed = 0

  /** Use ledger.worker. */
  constructor(parts: WorkerParts) {
    const { store, queues, instance, lease } = parts
    const tasks = [...parts.handlers.keys()]
    this.#parts = parts
    this.#health = new Health((event, problem) => this.#tell({ event, problem }))
    this.#completer = new Completer(store, this.#health)
    const { timeoutMs, graceMs } = parts
    this.#performances = new Map([...parts.handlers].map(([task, work]) => [task, { ...work, timeoutMs, graceMs, completer: this.#completer, tell: (event) => this.#tell(event) }]))
    this.#slots = new Slots({ concurrency: parts.concurrency, perform: (run) => this.#perform(run), unrecorded: () => this.#completer.unrecorded, roomMade: () => this.#loop.room.hint() })
    this.#group = parts.pacemaker.group(parts.lease, { renewed: (names) => this.#each(names, (run) => run.renewed()), cancelled: (names) => this.#each(names, (run) => run.cancel()), lost: (names, reason) => this.#lose(names, reason), missed: (error) => this.#tell({ event: 'heartbeat_missed', error }) }, parts.hungAfterMs)
    this.#taker = new Taker({ store, health: this.#health, instance, tasks, leaseSeconds: lease.leaseMs / 1000, holds: (name) => this.#held.has(name) })
    this.#loop = new FetchLoop({
      store, queues, tasks,
      health: this.#health,
      pollMs: parts.pollMs,
      wanted: () => (monotonicMs() < this.#pausedUntil ? 0 : this.#slots.wanted),
      take: (queue, limit) => this.#take(queue, limit),
      onInterval: () => this.#onInterval(),
      reap: () => this.#reap(),
    })
    this.#listener = store.listen((queue) => this.hint(queue))
    this.#running = this.#loop.run()
  }

  /** As it stands in the rows of what it holds: an id of its own, of this process. */
  get instance(): Instance {
    return this.#parts.instance
  }

  /** How it is, and what it has in hand. */
  status(): WorkerStatus {
    const state = this.#isStopped ? 'stopped' : this.#stopping ? 'stopping' : this.#health.state
    const { abandoned, queued, active } = this.#slots
    return { state, problem: this.#health.problem, active: active.size, queued, unrecorded: this.#completer.unrecorded, abandoned, completed: this.#completed, failed: this.#failed }
  }

  /** There may be something in this queue; null: in any. */
  hint(queue: string | null): void {
    if (queue === null || this.#parts.queues.includes(queue)) this.#loop.work.hint()
  }

  /**
   * Claims no more, gives back what was not begun, and waits for the handlers at work; after the stop timeout their
   * signals abort, and what they leave unfinished is given back, the attempt not counted. Called again, it hurries.
   */
  async stop(): Promise<void> {
    if (this.#stopping) this.#hurry()
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    const { stopTimeoutMs, graceMs, closeStore } = this.#parts
    const hurry = new AbortController()
    this.#hurry = () => hurry.abort()
    this.#loop.stop()
    const unbegun = this.#slots.close()
    await this.#running
    await this.#giveBack(unbegun).catch(() => {}) // The database is away: their leases run out.
    await Promise.race([this.#slots.idle(), sleep(stopTimeoutMs, undefined, { signal: hurry.signal, ref: false }).catch(() => {})])
    for (const run of this.#slots.active) run.stop(STOPPING)
    await Promise.race([this.#slots.idle().then(() => this.#completer.drain()), sleep(graceMs + RECORDING_MS, undefined, { ref: false })])
    await this.#listener.close()
    this.#group.stop()
    await this.#loop.quiet()
    await closeStore()
    this.#isStopped = true
    this.#tell({ event: 'stopped', problem: this.#completer.unrecorded === 0 ? null : `${this.#completer.unrecorded} runs that are done could not be recorded` })
  }

  async #take(queue: string, limit: number): Promise<boolean> {
    const { lease, instance } = this.#parts
    const { runs, claimedAt, more } = await this.#taker.take(queue, limit)
    if (runs.length === 0) return more
    const scene = { store: this.#parts.handlerStore, instance, lease, patienceMs: this.#parts.patienceMs, observer: this.#parts.observer }
    const taken = runs.map((run) => new WorkRun(run, scene, claimedAt, (closed, viaCompleter) => this.#close(closed, viaCompleter)))
    for (const run of taken) this.#held.set(run.name, run)
    this.#group.hold(taken.map((run) => ({ of: run.taken, claimedAt })))
    if (this.#stopping) await this.#giveBack(taken)
    else this.#slots.add(taken)
    return more
  }

  async #perform(run: WorkRun): Promise<PerformEnd> {
    try {
      return await perform(run, this.#performances.get(run.task)!)
    } catch (error) {
      // What became of it could not be recorded at all; its lease runs out, and somebody takes it up.
      this.#tell({ event: 'lost', run, error })
      this.#close(run, false)
      return 'over'
    }
  }

  /** Nobody renews it any more. What was not recorded by the completer may have left its key to the next one. */
  #close(run: WorkRun, viaCompleter: boolean): void {
    if (!this.#held.delete(run.name)) return
    this.#released.push(run.name)
    if (this.#released.length === 1) queueMicrotask(() => this.#group.letGo(this.#released.splice(0)))
    if (viaCompleter) this.#slots.pump()
    else if (run.taken.concurrencyKey !== null) void this.#freeKeys([run.taken.concurrencyKey])
  }
  readonly #released: string[] = []

  async #freeKeys(keys: readonly string[]): Promise<void> {
    // If it fails, the sweep finds them.
    if (await this.#health.ask(() => freeKeys(this.#parts.store, keys), 'read').then(() => true, () => false)) this.#loop.work.hint()
  }

  async #onInterval(): Promise<void> {
    this.#taker.fromTheFront()
    await this.#giveBack(this.#slots.takeStale())
  }

  async #giveBack(runs: readonly WorkRun[]): Promise<void> {
    if (runs.length === 0) return
    await settle(this.#parts.store, this.#parts.patienceMs, () => this.#health.ask(() => releaseMany(this.#parts.store, runs.map((run) => run.taken))))
    for (const run of runs) {
      this.#close(run, true)
      this.#tell({ event: 'released', run })
    }
  }

  async #reap(): Promise<void> {
    const reaped = [...(await this.#parts.reap()), ...(await reapGone(this.#parts.store, this.#parts.instance.host, isDead))]
    if (reaped.length === 0) return
    this.#tell({ event: 'reaped', runs: reaped.length })
    const keys = new Set(reaped.flatMap(({ run }) => run.concurrencyKey ?? []))
    if (keys.size > 0) await this.#freeKeys([...keys])
  }

  /** Without heartbeats, what we claimed now would be lost as well, attempt after attempt. */
  #lose(names: readonly string[] | null, reason: LossReason): void {
    if (names === null) {
      this.#pausedUntil = monotonicMs() + PAUSE_MS
      this.#tell({ event: 'heartbeat_missed', error: new Error('the thread of the heartbeats has ended') })
    }
    this.#each(names, (run) => run.lose(reason))
  }

  #each(names: readonly string[] | null, what: (run: WorkRun) => void): void {
    for (const name of names ?? [...this.#held.keys()]) {
      const run = this.#held.get(name)
      if (run) what(run)
    }
  }

  #tell(event: WorkerEvent): void {
    if (event.event === 'completed') this.#completed++
    if (event.event === 'failed') this.#failed++
    if (event.event === 'lost') this.#taker.lose(event.run.name)
    if (event.event === 'completed' && !event.run.isWithData) this.#parts.observer.tell('complete', factsOf(event.run))
    this.#parts.tell(event)
  }
}

function factsOf({ task, taskKey, attempt, fence, taken: { instanceId } }: WorkRun) {
  return { task, taskKey, attempt, fence, instanceId }
}

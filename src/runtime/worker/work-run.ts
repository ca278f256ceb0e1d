/** A run in the hands of a handler: what it is, when to stop, and what a holder may do with it. */
import type { CallerConnection } from '../../dialect/caller-connection.ts'
import { LedgerError } from '../../model/errors.ts'
import type { LeaseTerms } from '../../model/lease.ts'
import { nameOf, type Instance } from '../../model/run.ts'
import type { Store } from '../../store/tables.ts'
import type { TakenRun } from '../../store/take-batch.ts'
import { Claim } from '../claim.ts'
import type { Work } from '../commit-together.ts'
import type { EffectOptions, Perform } from '../effect.ts'
import type { HeartEvents, LossReason } from '../heart.ts'
import type { Observer } from '../observer.ts'

export interface WorkScene {
  readonly store: Store
  readonly observer: Observer
  readonly instance: Instance
  readonly lease: LeaseTerms
  readonly patienceMs: number
}

/** Thrown into the signal of a run whose worker must stop: the run is then given back. */
export const STOPPING = new LedgerError('LEASE_LOST', 'the worker was told to stop; the run is given back')

/** @param viaCompleter its completion was recorded in a group, which has seen to its concurrency key */
export type OnClose = (run: WorkRun, viaCompleter: boolean) => void

export class WorkRun {
  readonly taskKey: string
  readonly task: string
  readonly window: TakenRun['window']
  /** 1 for the first try at this run. */
  readonly attempt: number
  readonly maxAttempts: number
  /** Grows with each claim in its scope: a protected resource refuses the smaller one. */
  readonly fence: bigint
  /** @internal */
  readonly name: string
  readonly #taken: TakenRun
  readonly #scene: WorkScene
  readonly #claimedAt: number
  #abort: AbortController | undefined
  #claim: Claim | undefined
  #heart: HeartEvents | undefined
  #lost: LossReason | null = null
  #withData = false
  #stopped: () => void = () => {}
  readonly #onClose: OnClose

  constructor(taken: TakenRun, scene: WorkScene, claimedAt: number, onClose: OnClose) {
    this.#onClose = onClose
    this.taskKey = taken.taskKey
    this.task = taken.task
    this.window = taken.window
    this.attempt = taken.attempt
    this.maxAttempts = taken.maxAttempts
    this.fence = taken.fence
    this.name = nameOf(taken)
    this.#taken = taken
    this.#scene = scene
    this.#claimedAt = claimedAt
  }

  /** The same on every attempt: for interfaces that take an idempotency key. */
  get idempotencyKey(): string {
    return this.taskKey
  }

  /** Aborts when the lease is lost, the time is over or the worker must stop; its reason says which. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    return this.#abort.signal
  }

  /** As claim.effect: performs a named side effect at most once in this run. */
  async effect<T>(name: string, perform: Perform<T>, options: EffectOptions<T> = {}): Promise<T> {
    return this.claim.effect(name, perform, options)
  }

  /** As claim.transaction: commits the caller's statements and the completion of the run together. */
  async transaction<T>(work: Work<T>): Promise<T> {
    const value = await this.claim.transaction(work)
    this.#withData = true
    return value
  }

  /** As claim.completeIn: completes the run in a transaction of the caller's. */
  async completeIn(connection: CallerConnection): Promise<void> {
    await this.claim.completeIn(connection)
    this.#withData = true
  }

  /** The whole claim. Who closes it in the handler has closed the run. Made when it is first asked for: most runs need none. */
  get claim(): Claim {
    const { store, observer, instance, lease, patienceMs } = this.#scene
    const { backoffSeconds, maxAttempts } = this.#taken
    this.#claim ??= new Claim({
      store, observer, instance, lease, patienceMs,
      claimed: this.#taken,
      task: this.task,
      window: this.window,
      retry: { maxAttempts, afterFailure: backoffSeconds !== null, backoffMs: (backoffSeconds ?? 0) * 1000 },
      claimedAt: this.#claimedAt,
      // The worker renews all its runs together, and tells us of ours.
      pacemaker: { start: (_of, _terms, _claimedAt, events) => ((this.#heart = events), { stop() {} }) },
    })
    if (this.#lost) this.#heart?.lost(this.#lost)
    return this.#claim
  }

  /** The payload as JSON, as it was enqueued; null for none. */
  get payloadText(): string | null {
    return this.#taken.payload
  }

  /** How long this attempt may take, where it was enqueued with a timeout. */
  get timeoutMs(): number | null {
    return this.#taken.timeoutSeconds === null ? null : this.#taken.timeoutSeconds * 1000
  }

  /** The signal has aborted because the worker must stop, and for no other reason: what is left unfinished is given back. */
  get isGivenBack(): boolean {
    return this.#abort?.signal.reason === STOPPING
  }

  /** @internal */
  get taken(): TakenRun {
    return this.#taken
  }

  /** @internal The run was, or is to be, completed with the handler's data. */
  get isWithData(): boolean {
    return this.#withData
  }

  /** @internal The handler has closed the claim itself. */
  get isClosedByHandler(): boolean {
    return this.#claim?.isClosed === true && !this.#withData
  }

  /** @internal */
  get isLost(): boolean {
    return this.#lost !== null
  }

  /** @internal */
  renewed(): void {
    this.#heart?.renewed?.()
  }

  /** @internal An operator asked for it to stop: it ends as cancelled, whatever attempts are left. */
  cancel(): void {
    this.#heart?.cancelled?.()
    if (!this.isStopped) this.stop(new LedgerError('RUN_CANCELLED', `${this.taskKey} attempt ${this.attempt}: an operator cancelled the run; the work was told to stop`, { taskKey: this.taskKey, attempt: this.attempt }))
  }

  /** @internal */
  lose(reason: LossReason): void {
    if (this.#lost || (this.#withData && reason === 'taken')) return // The beat found our own completion.
    this.#lost = reason
    this.#heart?.lost(reason)
    const why = reason === 'taken' ? 'the run is no longer ours' : 'the lease could not be renewed in time'
    this.stop(new LedgerError('LEASE_LOST', `${this.taskKey} attempt ${this.attempt}: ${why}; the work was told to stop`, { taskKey: this.taskKey, attempt: this.attempt, fence: this.fence, instanceId: this.#taken.instanceId }))
  }

  /** @internal Tells the handler to stop. */
  stop(reason: Error): void {
    this.#abort ??= new AbortController()
    this.#abort.abort(reason)
    this.#stopped()
  }

  /** @internal */
  get isStopped(): boolean {
    return this.#abort?.signal.aborted ?? false
  }

  /** @internal Calls it when the handler has been told to stop. */
  whenStopped(stopped: () => void): void {
    this.#stopped = stopped
    if (this.isStopped) stopped()
  }

  /** @internal It is over, and recorded if it could be: nobody renews it any more. */
  close(viaCompleter = false): void {
    this.#onClose(this, viaCompleter)
  }
}

/** A claim: the proof that this process holds a run, and everything a holder may do with it. */
import type { CallerConnection } from '../dialect/caller-connection.ts'
import type { ClaimRef } from '../model/claim-ref.ts'
import { LedgerError } from '../model/errors.ts'
import { backoffMs } from '../model/retry.ts'
import type { Ending, Holder } from '../model/run.ts'
import type { FailureReason } from '../model/states.ts'
import { closedByUs, complete, completedByUs, fail, heartbeat, release, type GivenUp } from '../store/close.ts'
import { commitTogether, completeOn, type Work } from './commit-together.ts'
import { performEffect, type EffectOptions, type Perform } from './effect.ts'
import type { ClaimParts } from './claim-parts.ts'
import { boundedEnding, errorText, plainerEndings, writeAcceptable } from './ending.ts'
import type { LossReason } from './heart.ts'
import { letGo } from './held.ts'
import { leaseLost } from './lease-lost.ts'
import type { Pulse } from './pacemaker.ts'
import { RECORDING_PATIENCE_MS, settle } from './settle.ts'
import type { Span } from './telemetry.ts'

/** What became of a run that failed: when its next attempt may begin, or null when that was the last one. */
export interface Failed {
  readonly retryInMs: number | null
  /** An operator had cancelled the run. */
  readonly cancelled?: true
}

export class Claim {
  readonly status = 'claimed'
  readonly taskKey: string
  readonly task: string
  readonly window: ClaimParts['window']
  readonly instanceId: string
  /** 1 for the first try at this run. */
  readonly attempt: number
  readonly maxAttempts: number
  /** Larger than that of every earlier claim in the same scope: a protected resource refuses the smaller one. */
  readonly fence: bigint
  /** Aborts when the lease is lost or can no longer be counted on (LEASE_LOST), or an operator wants the work stopped (RUN_CANCELLED). */
  readonly signal: AbortSignal

  readonly #parts: ClaimParts
  readonly #abort = new AbortController()
  readonly #pulse: Pulse
  readonly #span: Span
  #closed = false
  /** `asked`: by a transaction of the caller's, whose COMMIT we do not see. */
  #withData: 'no' | 'asked' | 'committed' = 'no'
  #onRenewed: (() => void) | undefined

  constructor(parts: ClaimParts) {
    const { claimed } = parts
    this.#parts = parts
    this.taskKey = claimed.taskKey
    this.task = parts.task
    this.window = parts.window
    this.instanceId = claimed.instanceId
    this.attempt = claimed.attempt
    this.maxAttempts = claimed.maxAttempts
    this.fence = claimed.fence
    this.signal = this.#abort.signal
    this.#span = parts.observer.begin(this.#told)
    this.#pulse = parts.pacemaker.start(this.#holder, parts.lease, parts.claimedAt, {
      renewed: () => this.#onRenewed?.(),
      cancelled: () => this.#cancel(),
      missed: (error) => {
        parts.observer.tell('heartbeat_missed', { ...this.#told, error: errorText(error).split('\n')[0] })
        parts.onHeartbeat?.(error)
      },
      lost: (reason, cause) => this.#lose(reason, cause),
    })
  }

  /** How long the claim lasts without a heartbeat. */
  get leaseMs(): number {
    return this.#parts.lease.leaseMs
  }

  /** Its closing write has been made, or tried to the end. */
  get isClosed(): boolean {
    return this.#closed
  }

  /** The trace that this run is, for another process that does a part of it; null where nothing is traced. */
  get traceparent(): string | null {
    return this.#span.traceparent
  }

  /** What begins in `work` is traced as a part of this run; `ledger.run` does it for its handler. */
  within<T>(work: () => T): T {
    return this.#span.within(work)
  }

  /** Calls back after each renewal of the lease (for a watchdog in another process). */
  onRenewed(listener: () => void): void {
    this.#onRenewed = listener
  }

  /**
   * Renews the lease now; it is renewed in the background anyway.
   * @throws LEASE_LOST, DATABASE_UNAVAILABLE; RUN_CANCELLED: it was renewed, and the work is to be stopped
   */
  async heartbeat(): Promise<void> {
    const beat = await settle(this.#parts.store, this.#parts.patienceMs, () => heartbeat(this.#parts.store, this.#holder))
    if (beat === 'lost') throw await this.#lost()
    if (beat === 'cancelled') throw this.#cancel()
  }

  /**
   * Records that the run is done. Keeps trying while the database is away; accepted as long as the run is still ours,
   * however late. After `transaction` or `completeIn` it only makes sure that the run is completed.
   * @throws LEASE_LOST when it is not: then nothing was recorded.
   */
  async complete(ending: Ending = {}): Promise<void> {
    if (this.#withData !== 'no') {
      if (await this.isCompleted()) return
      throw await this.#lost()
    }
    await this.#close('complete', ending, async (form) => mineOrLost(await complete(this.#parts.store, this.#holder, form)))
  }

  /**
   * Records that this attempt failed. The run goes back to pending when attempts after a failure were asked for and
   * one is left; `final` says that another try would not help. One that an operator has cancelled ends as cancelled,
   * whatever is said here. @throws LEASE_LOST
   */
  async fail(error: unknown, { reason = 'error', final = false, ...ending }: Ending & { reason?: FailureReason; final?: boolean } = {}): Promise<Failed> {
    const { retry, store } = this.#parts
    const again = !final && retry.afterFailure && this.attempt < this.maxAttempts
    const retryInMs = again ? backoffMs(retry, this.attempt, Math.random()) : null
    const told: Ending = { error: errorText(error), ...ending }
    const givenUp = await this.#close('fail', told, (form) => fail(store, this.#holder, reason, form, retryInMs === null ? null : retryInMs / 1000))
    return givenUp === 'stopped' ? { retryInMs: null, cancelled: true } : { retryInMs }
  }

  /** Gives the run back unbegun: it is pending at once, and the attempt is not counted. @throws LEASE_LOST */
  async release(ending: Ending = {}): Promise<void> {
    await this.#close('release', ending, async (form) => mineOrLost(await release(this.#parts.store, this.#holder, form)))
  }

  /**
   * Performs a named side effect at most once in this run, or with `key` in all runs; a result that was recorded comes
   * back instead. Results are JSON of at most 64 KiB, and what comes back has passed through it. Not to be called
   * inside `transaction`. What `perform` throws is thrown on, and leaves the effect in doubt (see NotPerformed).
   * @throws EFFECT_IN_DOUBT, EFFECT_HELD while another live attempt performs it, RESULT_NOT_RECORDABLE (it is done, and
   *   recorded as done), LEASE_LOST, INVALID_OPTION, DATABASE_UNAVAILABLE (it was not performed)
   */
  async effect<T>(name: string, perform: Perform<T>, options: EffectOptions<T> = {}): Promise<T> {
    const { store, task, instance, patienceMs } = this.#parts
    const scene = { store, task, instance, patienceMs, holder: this.#holder, signal: this.signal, lost: () => this.#lost() }
    return this.#parts.observer.verb('effect', { ...this.#told, effect: name }, () => performEffect(scene, name, perform, options), () => ({ event: 'effect' }))
  }

  /**
   * Runs the caller's statements and completes the run in one commit. On a transient conflict the whole of it is rolled
   * back and run again. What `work` throws is thrown on: nothing was written, and the claim is still open.
   * @returns what `work` returned in the try that was committed
   * @throws LEASE_LOST when the run was not ours any more: then nothing was written
   */
  async transaction<T>(work: Work<T>): Promise<T> {
    const commit = async () => (this.#closed ? null : commitTogether(this.#parts.store, this.#holder, work))
    const done = await this.#parts.observer.verb('transaction', this.#told, commit, (together) => together && { event: 'complete' })
    if (!done) throw await this.#lost()
    this.#withData = 'committed'
    this.#end({ status: 'complete' })
    return done.value
  }

  /**
   * Completes the run in a transaction that the caller has open on the ledger's database; it counts when that commits.
   * Make it the last statement: it locks the run's row, and heartbeats wait for it. After a COMMIT without an answer,
   * `isCompleted` says what became of it.
   * @throws LEASE_LOST when the run is not ours any more: then roll back (the transaction is still usable)
   */
  async completeIn(connection: CallerConnection): Promise<void> {
    const { store } = this.#parts
    if (this.#closed || !(await completeOn(store, await store.on(connection), this.#holder))) throw await this.#lost()
    this.#withData = 'asked'
  }

  /** Reads back whether the run is completed, and by this claim; if so, the claim is closed. */
  async isCompleted(): Promise<boolean> {
    const { store } = this.#parts
    if (this.#withData !== 'committed' && !(await settle(store, RECORDING_PATIENCE_MS, () => completedByUs(store, this.#holder)))) return false
    if (!this.#closed) this.#parts.observer.tell('complete', this.#told)
    this.#withData = 'committed'
    this.#end({ status: 'complete' })
    return true
  }

  /** Stops renewing the lease here and says what another process needs to go on with the claim. */
  handOver(): ClaimRef {
    const { lease, retry } = this.#parts
    this.#end({ status: 'handed_over' })
    return { ...this.#facts(), task: this.task, window: this.window, maxAttempts: this.maxAttempts, leaseMs: lease.leaseMs, heartbeatMs: lease.heartbeatMs, backoffMs: retry.afterFailure ? retry.backoffMs : null }
  }

  get #holder(): Holder {
    return this.#parts.claimed
  }

  /** One closing write, tried until its outcome is known, in a plainer form each time the database refuses its text. */
  async #close(verb: 'complete' | 'fail' | 'release', ending: Ending, write: (form: Ending) => Promise<GivenUp>): Promise<GivenUp> {
    if (this.#closed) throw await this.#lost()
    const forms = plainerEndings(boundedEnding(ending))
    const record = () => settle(this.#parts.store, RECORDING_PATIENCE_MS, async (uncertain) => {
      const written = await writeAcceptable(this.#parts.store, forms, write)
      return written === 'lost' && uncertain ? mineOrLost(await closedByUs(this.#parts.store, this.#holder)) : written
    })
    const given = await this.#parts.observer.verb(verb, this.#told, record, (written) => (written === 'lost' ? null : { event: verb, facts: { exitCode: ending.exitCode } }))
    this.#end({ status: given === 'lost' ? 'lost' : verb }, given === 'lost' ? 'lost' : ending.error?.split('\n')[0])
    if (given === 'lost') throw await this.#lost()
    return given
  }

  #end(facts: { readonly status: string }, error?: string): void {
    if (!this.#closed) this.#span.end(facts, error)
    this.#closed = true
    letGo(this.#holder)
    this.#pulse.stop()
  }

  #cancel(): LedgerError {
    const error = new LedgerError('RUN_CANCELLED', `${this.taskKey} attempt ${this.attempt}: an operator cancelled the run; the work was told to stop`, this.#facts())
    this.#abort.abort(error)
    return error
  }

  #lose(reason: LossReason, cause?: unknown): void {
    if (this.#withData === 'asked') return // The beat found our own completion, or waits for its commit.
    this.#parts.observer.tell('lost', { ...this.#told, reason })
    const why = reason === 'taken' ? 'the run is no longer ours' : 'the lease could not be renewed in time'
    this.#abort.abort(new LedgerError('LEASE_LOST', `${this.taskKey} attempt ${this.attempt}: ${why}; the work was told to stop`, this.#facts(), cause))
  }

  async #lost(): Promise<LedgerError> {
    return leaseLost(this.#parts, this.#facts())
  }

  get #told() {
    return { task: this.task, ...this.#facts() }
  }

  #facts() {
    return { taskKey: this.taskKey, attempt: this.attempt, fence: this.fence, instanceId: this.instanceId }
  }
}

function mineOrLost(mine: boolean): GivenUp {
  return mine ? 'done' : 'lost'
}

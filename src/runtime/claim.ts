/** A claim: the proof that this process holds a run, and everything a holder may do with it. */
import { LedgerError } from '../model/errors.ts'
import type { LeaseTerms } from '../model/lease.ts'
import { backoffMs, type RetryTerms } from '../model/retry.ts'
import type { Ending, Holder } from '../model/run.ts'
import type { FailureReason } from '../model/states.ts'
import { closedByUs, complete, fail, heartbeat, release } from '../store/close.ts'
import type { Claimed } from '../store/claim.ts'
import { readRun } from '../store/read-run.ts'
import type { Store } from '../store/tables.ts'
import { boundedEnding, errorText, plainerEndings } from './ending.ts'
import type { LossReason } from './heart.ts'
import { letGo } from './held.ts'
import type { Pacemaker, Pulse } from './pacemaker.ts'
import { settle } from './settle.ts'

/** A finished job whose result cannot be recorded keeps trying for this long. */
const RECORDING_PATIENCE_MS = 24 * 3_600_000

export interface ClaimParts {
  readonly store: Store
  readonly pacemaker: Pacemaker
  readonly claimed: Claimed
  readonly task: string
  readonly window: { readonly start: Date; readonly end: Date; readonly zone: string } | null
  readonly lease: LeaseTerms
  readonly retry: RetryTerms
  /** When the claim was sent, by monotonicMs(). */
  readonly claimedAt: number
  readonly onHeartbeat?: ((error: unknown) => void) | undefined
}

/** What became of a run that failed: when its next attempt may begin, or null when that was the last one. */
export interface Failed {
  readonly retryInMs: number | null
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
  /** Aborts when the lease is lost or can no longer be counted on; its reason is the LEASE_LOST error. */
  readonly signal: AbortSignal

  readonly #parts: ClaimParts
  readonly #abort = new AbortController()
  readonly #pulse: Pulse
  #closed = false
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
    this.#pulse = parts.pacemaker.start(this.#holder, parts.lease, parts.claimedAt, {
      renewed: () => this.#onRenewed?.(),
      missed: (error) => parts.onHeartbeat?.(error),
      lost: (reason, cause) => this.#lose(reason, cause),
    })
  }

  /** How long the claim lasts without a heartbeat. */
  get leaseMs(): number {
    return this.#parts.lease.leaseMs
  }

  /** Calls back after each renewal of the lease (for a watchdog in another process). */
  onRenewed(listener: () => void): void {
    this.#onRenewed = listener
  }

  /** Renews the lease now; it is renewed in the background anyway. @throws LEASE_LOST, DATABASE_UNAVAILABLE */
  async heartbeat(): Promise<void> {
    if (!(await settle(this.#parts.store, 0, () => heartbeat(this.#parts.store, this.#holder)))) throw await this.#lost()
  }

  /**
   * Records that the run is done. Keeps trying while the database is away; accepted as long as the run is still ours,
   * however late. @throws LEASE_LOST when it is not: then nothing was recorded.
   */
  async complete(ending: Ending = {}): Promise<void> {
    await this.#close(ending, (form) => complete(this.#parts.store, this.#holder, form))
  }

  /**
   * Records that this attempt failed. The run goes back to pending when attempts after a failure were asked for and
   * one is left; `final` says that another try would not help. @throws LEASE_LOST
   */
  async fail(error: unknown, { reason = 'error', final = false, ...ending }: Ending & { reason?: FailureReason; final?: boolean } = {}): Promise<Failed> {
    const { retry, store } = this.#parts
    const again = !final && retry.afterFailure && this.attempt < this.maxAttempts
    const retryInMs = again ? backoffMs(retry, this.attempt, Math.random()) : null
    const told: Ending = { error: errorText(error), ...ending }
    await this.#close(told, (form) => fail(store, this.#holder, reason, form, retryInMs === null ? null : retryInMs / 1000))
    return { retryInMs }
  }

  /** Gives the run back unbegun: it is pending at once, and the attempt is not counted. @throws LEASE_LOST */
  async release(ending: Ending = {}): Promise<void> {
    await this.#close(ending, (form) => release(this.#parts.store, this.#holder, form))
  }

  get #holder(): Holder {
    return this.#parts.claimed
  }

  /** One closing write, tried until its outcome is known, in a plainer form each time the database refuses its text. */
  async #close(ending: Ending, write: (form: Ending) => Promise<boolean>): Promise<void> {
    if (this.#closed) throw await this.#lost()
    const forms = plainerEndings(boundedEnding(ending))
    const mine = await settle(this.#parts.store, RECORDING_PATIENCE_MS, async (uncertain) => {
      const written = await writeAcceptable(this.#parts.store, forms, write)
      return written || (uncertain && (await closedByUs(this.#parts.store, this.#holder)))
    })
    this.#closed = true
    letGo(this.#holder)
    this.#pulse.stop()
    if (!mine) throw await this.#lost()
  }

  #lose(reason: LossReason, cause?: unknown): void {
    const why = reason === 'taken' ? 'the run is no longer ours' : 'the lease could not be renewed in time'
    this.#abort.abort(new LedgerError('LEASE_LOST', `${this.taskKey} attempt ${this.attempt}: ${why}; the work was told to stop`, this.#facts(), cause))
  }

  /** LEASE_LOST with what the ledger knows now about who has the run. */
  async #lost(): Promise<LedgerError> {
    const run = await readRun(this.#parts.store, this.taskKey).catch(() => null) // Only for the message; its absence is no answer.
    const now = run === null ? 'the run is gone' : run.status === 'processing' && run.instanceId !== this.instanceId ? `now held by ${run.host} pid ${run.pid} (attempt ${run.attempt})` : `the run is ${run.status}`
    return new LedgerError('LEASE_LOST', `${this.taskKey} attempt ${this.attempt} is not held by this claim any more; ${now}; nothing was recorded`, this.#facts())
  }

  #facts() {
    return { taskKey: this.taskKey, attempt: this.attempt, fence: this.fence, instanceId: this.instanceId }
  }
}

async function writeAcceptable(store: Store, forms: readonly Ending[], write: (form: Ending) => Promise<boolean>): Promise<boolean> {
  for (const form of forms.slice(0, -1)) {
    try {
      return await write(form)
    } catch (error) {
      if (store.diagnose(error).kind !== 'other') throw error
    }
  }
  return write(forms.at(-1)!)
}

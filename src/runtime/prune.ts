/** Takes the old finished runs of each task away, batch by batch, beside everything else that goes on. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Actor } from '../model/action.ts'
import type { Duration } from '../model/duration.ts'
import { LedgerError } from '../model/errors.ts'
import { checkTaskName } from '../model/names.ts'
import { retained, retentionTerms, type Kept, type RetentionTerms } from '../model/retention.ts'
import { boundText } from '../model/text.ts'
import { newestOf, readFinished, taskNames, type FinalStatus, type FinishedRun } from '../store/finished-runs.ts'
import { pagesByInstant } from '../store/pages.ts'
import { barBefore, countPayloads, countRuns, takePayloads, takeRuns, type Batch } from '../store/prune.ts'
import { recordAction } from '../store/record-action.ts'
import { readRefusals, takeRefusals, withoutRun } from '../store/stale-refusals.ts'
import type { Store } from '../store/tables.ts'
import { monotonicMs } from './heart.ts'
import { settle } from './settle.ts'

export interface PruneOptions {
  /** Runs that ended longer ago than this go. */
  readonly olderThan: Duration
  /** Only of this task. */
  readonly task?: string | undefined
  /** Failed runs stay, whatever their age. */
  readonly keepFailed?: boolean
  /** No run goes, only what the old ones carry: payload and result of completed runs, the output of all. */
  readonly payloadsOnly?: boolean
  /** Runs under a key of the caller's (`--key`) go too. Nothing then keeps such a key from running again. */
  readonly keyed?: boolean
  /** Counts what would go, and changes nothing. */
  readonly dryRun?: boolean
  /** Rows a transaction, at most 1000. Default 500. */
  readonly batch?: number
  /** Who does it, and why; recorded with what went. */
  readonly by?: string | undefined
  readonly because?: string | undefined
  /** Ends it after the batch that is under way; what has gone is recorded. */
  readonly signal?: AbortSignal
}

/** What went of one task, and what stayed although it is old enough. */
export interface PrunedTask {
  readonly task: string
  readonly runs: number
  /** Attempts and conflicts of these runs. */
  readonly attempts: number
  readonly effects: number
  /** Lines of launches that lost and whose key has no run. */
  readonly refusals: number
  /** Runs that only lost what they carried. */
  readonly payloads: number
  /** No window that begins earlier runs any more; null where no window went. */
  readonly prunedBefore: Date | null
  readonly kept: { readonly newest: number; readonly keyed: number; readonly inDoubt: number }
  /** Told to stop before it was through. */
  readonly interrupted: boolean
}

type Tally = { -readonly [K in keyof PrunedTask]: K extends 'kept' ? { -readonly [L in keyof PrunedTask['kept']]: number } : PrunedTask[K] }

/** Each task as it is done. @throws INVALID_OPTION, DATABASE_UNAVAILABLE; what had gone by then has gone */
export async function* prune(store: Store, patienceMs: number, by: Actor, options: PruneOptions): AsyncGenerator<PrunedTask> {
  const terms = retentionTerms(options)
  const tasks = options.task === undefined ? await settle(store, patienceMs, () => taskNames(store)) : [checkTaskName(options.task)]
  const before = await settle(store, patienceMs, () => cutoff(store, terms.olderThanMs))
  for (const task of tasks) {
    if (options.signal?.aborted) return
    yield await new TaskPrune(store, patienceMs, task, before, terms, options).run(by)
  }
}

async function cutoff(store: Store, olderThanMs: number): Promise<Date> {
  const { rows } = await sql<{ at: unknown }>`select ${store.plusSeconds(store.now(), sql.lit(-olderThanMs / 1000))} as at`.execute(store.db)
  return store.readInstant(rows[0]!.at)!
}

class TaskPrune {
  readonly #store: Store
  readonly #patienceMs: number
  readonly #terms: RetentionTerms
  readonly #options: PruneOptions
  readonly #before: Date
  readonly #tally: Tally

  constructor(store: Store, patienceMs: number, task: string, before: Date, terms: RetentionTerms, options: PruneOptions) {
    this.#store = store
    this.#patienceMs = patienceMs
    this.#terms = terms
    this.#options = options
    this.#before = before
    this.#tally = { task, runs: 0, attempts: 0, effects: 0, refusals: 0, payloads: 0, prunedBefore: null, kept: { newest: 0, keyed: 0, inDoubt: 0 }, interrupted: false }
  }

  async run(by: Actor): Promise<PrunedTask> {
    try {
      for (const status of this.#terms.keepFailed ? (['completed'] as const) : (['completed', 'failed'] as const)) await this.#runs(status)
      if (!this.#terms.payloadsOnly) await this.#refusals()
    } catch (error) {
      await this.#record(by).catch(() => {}) // What stopped us is what counts.
      throw error
    }
    await this.#record(by)
    return this.#tally
  }

  async #runs(status: FinalStatus): Promise<void> {
    const { task } = this.#tally
    const kept = await this.#settle(() => newestOf(this.#store, task))
    const read = (from: Date | null, limit: number) => this.#settle(() => readFinished(this.#store, task, status, this.#before, from, limit))
    for await (const page of this.#rested(pagesByInstant(this.#terms.batch, read, ({ taskKey, finishedAt }) => ({ id: taskKey, at: finishedAt })))) {
      if (this.#terms.payloadsOnly) await this.#payloads({ task, status, keys: page.map(({ taskKey }) => taskKey), before: this.#before })
      else await this.#batch(status, page, kept)
    }
  }

  async #payloads(batch: Batch): Promise<void> {
    this.#tally.payloads += await this.#settle(() => (this.#options.dryRun ? countPayloads(this.#store, batch) : takePayloads(this.#store, batch)))
  }

  async #batch(status: FinalStatus, page: readonly FinishedRun[], kept: Kept): Promise<void> {
    const tally = this.#tally
    const runs: FinishedRun[] = []
    for (const run of page) {
      const reason = retained(run, kept, this.#terms)
      if (reason === null) runs.push(run)
      else tally.kept[reason]++
    }
    const batch = { task: tally.task, status, keys: runs.map(({ taskKey }) => taskKey), before: this.#before }
    if (!this.#options.dryRun) await this.#bar(runs, kept)
    const taken = await this.#settle(() => (this.#options.dryRun ? countRuns(this.#store, batch) : takeRuns(this.#store, batch)))
    tally.runs += taken.runs
    tally.attempts += taken.attempts
    tally.effects += taken.effects
    tally.kept.inDoubt += taken.inDoubt
  }

  /** Before a row goes, whatever may launch its window again must be able to see that it may not. */
  async #bar(runs: readonly FinishedRun[], { windowsFrom }: Kept): Promise<void> {
    const windows = runs.filter(({ windowEnd }) => windowEnd !== null)
    if (windows.length === 0) return
    const end = Math.max(...windows.map(({ windowEnd }) => windowEnd!.getTime()))
    const before = new Date(Math.min(end, windowsFrom!.getTime()))
    const { task, prunedBefore } = this.#tally
    await this.#settle(() => barBefore(this.#store, task, before))
    this.#tally.prunedBefore = prunedBefore !== null && prunedBefore > before ? prunedBefore : before
    const scopes = [...new Set(windows.map(({ scope }) => scope))].toSorted()
    if (await this.#settle(() => this.#store.outwaitClaims(scopes))) return
    throw new LedgerError('DATABASE_UNAVAILABLE', `${this.#store.place}: somebody's transaction that writes runs does not end; prune goes on when it has`, { place: this.#store.place, retryable: true, task })
  }

  async #refusals(): Promise<void> {
    const read = (from: Date | null, limit: number) => this.#settle(() => readRefusals(this.#store, this.#tally.task, this.#before, from, limit))
    for await (const page of this.#rested(pagesByInstant(this.#terms.batch, read, ({ id, endedAt }) => ({ id: String(id), at: endedAt })))) {
      const ids = await this.#settle(() => withoutRun(this.#store, page))
      if (ids.length > 0) this.#tally.refusals += this.#options.dryRun ? ids.length : await this.#settle(() => takeRefusals(this.#store, ids))
    }
  }

  /** Between two batches it rests as long as the batch took: half of the database is for those who work. */
  async *#rested<T>(pages: AsyncGenerator<T>): AsyncGenerator<T> {
    const { signal, dryRun } = this.#options
    let began = monotonicMs()
    for await (const page of pages) {
      if (signal?.aborted) {
        this.#tally.interrupted = true
        return
      }
      yield page
      if (!dryRun) await sleep(monotonicMs() - began, undefined, signal && { signal }).catch(() => {}) // Only an abort rejects.
      began = monotonicMs()
    }
  }

  /** Nothing went, nothing is recorded. */
  async #record(by: Actor): Promise<void> {
    const { task, runs, attempts, effects, refusals, payloads, prunedBefore, interrupted } = this.#tally
    if (this.#options.dryRun || runs + refusals + payloads === 0) return
    const { keepFailed, payloadsOnly, keyed } = this.#terms
    const details = JSON.stringify({ finished_before: this.#before, keep_failed: keepFailed, payloads_only: payloadsOnly, keyed, runs, attempts, effects, refusals, payloads, pruned_before: prunedBefore, interrupted })
    const because = this.#options.because ? boundText(this.#options.because, 2000, 'head') : null
    await this.#settle(() => this.#store.statement((db) => recordAction(this.#store, db, { name: 'prune', task, taskKey: null, because, details }, by)))
  }

  #settle<T>(work: () => Promise<T>): Promise<T> {
    return settle(this.#store, this.#patienceMs, work)
  }
}

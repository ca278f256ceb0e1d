/** A throwaway ledger for users' own suites: in memory or in their database, with a clock that they move and no process beside the test. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { sql } from 'kysely'
import { dropLedger } from '../../dialect/drop-ledger.ts'
import { durationMs, type Duration } from '../../model/duration.ts'
import { jsonValue } from '../../model/json-value.ts'
import { taskKey } from '../../model/names.ts'
import type { AnyTasks, PayloadOf, TaskName } from '../../model/tasks.ts'
import type { Status } from '../../model/states.ts'
import { look } from '../../store/tend-line.ts'
import type { Store } from '../../store/tables.ts'
import type { LedgerOptions } from '../ledger-options.ts'
import { Ledger } from '../ledger.ts'
import { openStore } from '../open-store.ts'
import { InlinePacemaker } from '../pacemaker.ts'
import type { WorkerOptions } from '../queue.ts'
import type { Worker } from '../worker/worker.ts'
import { migrate } from '../../migrate/migrate.ts'

export interface TestLedgerOptions<Tasks> extends Pick<LedgerOptions<Tasks>, 'schemas'> {
  /** A database of yours: the tables get a prefix of their own there, and are dropped by `close`. Default: SQLite in memory. */
  readonly url?: string
}

/** A run that was enqueued, whatever became of it. */
export interface EnqueuedRun {
  readonly taskKey: string
  readonly task: string
  readonly queue: string
  readonly status: Status
  readonly attempt: number
  readonly payload: unknown
  readonly availableAt: Date
}

/** What `drain` did. */
export interface Drained {
  readonly completed: string[]
  /** Attempts that failed; `retryInMs` null when that was the last one. */
  readonly failed: { readonly taskKey: string; readonly error: unknown; readonly retryInMs: number | null }[]
}

export interface Expected<Payload> {
  readonly key?: string
  /** Each property that is named must be the same; others may be there. */
  readonly payload?: Partial<Payload> | Payload
}

export class TestLedger<Tasks = AnyTasks> extends Ledger<Tasks> {
  readonly #store: Store
  readonly #clock: { offsetMs: number }
  readonly #isShared: boolean

  /** Use openTestLedger. */
  constructor(store: Store, clock: { offsetMs: number }, options: TestLedgerOptions<Tasks>) {
    const shared = { ...store, close: async () => {} }
    super(shared, new InlinePacemaker(async () => shared), 0, { ...options, clock })
    this.#store = store
    this.#clock = clock
    this.#isShared = options.url !== undefined
  }

  /** Moves the clock of this ledger forward: what is due by then is due now, and leases run out. */
  advance(by: Duration): void {
    this.#clock.offsetMs += durationMs('by', by, { zero: true })
  }

  /** Runs what is due, and what becomes due by that, until nothing is left. A retry waits for its backoff: `advance` first. */
  async drain({ handlers, ...options }: Pick<WorkerOptions<Tasks>, 'handlers' | 'concurrency' | 'timeout'>): Promise<Drained> {
    const drained: Drained = { completed: [], failed: [] }
    for (let queues = await this.#queues(Object.keys(handlers)); queues.length > 0; queues = await this.#queues(Object.keys(handlers))) {
      const worker = await this.worker({
        ...options, handlers, queues, poll: 5,
        onEvent: (event) => {
          if (event.event === 'completed') drained.completed.push(event.run.taskKey)
          if (event.event === 'failed') drained.failed.push({ taskKey: event.run.taskKey, error: event.error, retryInMs: event.retryInMs })
        },
      })
      try {
        while (!(await this.#isDone(worker, queues, Object.keys(handlers)))) await new Promise((resolve) => setTimeout(resolve, 2))
      } finally {
        await worker.stop()
      }
    }
    return drained
  }

  /** Everything that was enqueued, of one task or of all, in its order. */
  async enqueued(task?: TaskName<Tasks>): Promise<EnqueuedRun[]> {
    let query = this.#store.db.selectFrom('task_runs').select(['task_key', 'task_name', 'queue', 'status', 'attempt', 'payload', 'available_at']).where('position', '>', 0 as never).orderBy('position')
    if (task !== undefined) query = query.where('task_name', '=', task)
    return (await query.execute()).map((row) => ({ taskKey: row.task_key, task: row.task_name, queue: row.queue, status: row.status, attempt: row.attempt, payload: jsonValue(row.payload), availableAt: this.#store.readInstant(row.available_at)! }))
  }

  /** @throws AssertionError, with what was enqueued of the task, when nothing of it is as expected */
  async assertEnqueued<Name extends TaskName<Tasks>>(task: Name, expected: Expected<PayloadOf<Tasks, Name>> = {}): Promise<void> {
    const runs = await this.enqueued(task)
    assert.ok(runs.some((run) => isAsExpected(run, expected)), `no run of ${task} like ${JSON.stringify(expected)} was enqueued; there are ${JSON.stringify(runs.map(({ taskKey, payload }) => ({ taskKey, payload })))}`)
  }

  /** @throws AssertionError when one is there */
  async assertNotEnqueued<Name extends TaskName<Tasks>>(task: Name, expected: Expected<PayloadOf<Tasks, Name>> = {}): Promise<void> {
    const found = (await this.enqueued(task)).find((run) => isAsExpected(run, expected))
    assert.ok(!found, `${found?.taskKey} was enqueued, with ${JSON.stringify(found?.payload)}`)
  }

  override async close(): Promise<void> {
    await super.close()
    if (this.#isShared) await dropLedger(this.#store)
    await this.#store.close()
  }

  /** The queues with something to do for these tasks now. */
  async #queues(tasks: readonly string[]): Promise<string[]> {
    const { db } = this.#store
    const rows = await db.selectFrom('task_runs').select('queue').distinct().where('status', '=', 'pending').where('task_name', 'in', tasks).where(sql<boolean>`(ready_queue is not null or due_at <= ${this.#store.now()})`).execute()
    return rows.map((row) => row.queue)
  }

  async #isDone(worker: Worker, queues: readonly string[], tasks: readonly string[]): Promise<boolean> {
    if (!isIdle(worker)) return false
    const { ready, due } = await look(this.#store, queues, tasks)
    return !ready && !due && isIdle(worker) // It may have taken something while we looked.
  }
}

function isIdle(worker: Worker): boolean {
  const { active, queued, unrecorded } = worker.status()
  return active + queued + unrecorded === 0
}

function isAsExpected<Payload>(run: EnqueuedRun, { key, payload }: Expected<Payload>): boolean {
  if (key !== undefined && run.taskKey !== taskKey(run.task, key)) return false
  if (payload === undefined) return true
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return isDeepStrictEqual(run.payload, payload)
  const found = run.payload as Record<string, unknown> | null | undefined
  return typeof found === 'object' && found !== null && Object.entries(payload).every(([name, value]) => isDeepStrictEqual(found[name], value))
}

/** @throws DATABASE_UNAVAILABLE, INVALID_OPTION */
export async function openTestLedger<Tasks = AnyTasks>(options: TestLedgerOptions<Tasks> = {}): Promise<TestLedger<Tasks>> {
  const clock = { offsetMs: 0 }
  const prefix = `t${randomBytes(4).toString('hex')}_`
  const url = options.url === undefined ? 'sqlite::memory:' : `${options.url}${options.url.includes('?') ? '&' : '?'}table_prefix=${prefix}`
  const store = await openStore(url, { clock })
  await migrate(store)
  return new TestLedger<Tasks>(store, clock, options)
}

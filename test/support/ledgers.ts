/** A suite on a migrated ledger of every database: one database for the whole suite, a task of its own for each test. */
import { after, before } from 'node:test'
import { sql } from 'kysely'
import { v7 as uuidv7 } from 'uuid'
import type { Instance } from '../../src/model/run.ts'
import { Ledger, openLedger } from '../../src/runtime/ledger.ts'
import type { LedgerOptions } from '../../src/runtime/ledger-options.ts'
import type { AnyTasks } from '../../src/model/tasks.ts'
import { openStore } from '../../src/runtime/open-store.ts'
import { InlinePacemaker } from '../../src/runtime/pacemaker.ts'
import { migrate } from '../../src/runtime/schema.ts'
import { claim, type Claimed, type ClaimRequest } from '../../src/store/claim.ts'
import type { DeathCheck } from '../../src/store/lost.ts'
import type { Store } from '../../src/store/tables.ts'
import { eachDatabase, type Row, type SuiteOptions, type TestDatabase } from './databases.ts'

export const nobodyDied: DeathCheck = () => false
export const everybodyDied: DeathCheck = () => true

export function eachLedger(title: string, suite: (bench: Bench) => void, options: SuiteOptions = {}): void {
  eachDatabase(title, (db) => {
    const bench = new Bench(db)
    before(() => bench.prepare())
    after(() => bench.close())
    suite(bench)
  }, options)
}

/** What a test of the ledger stands on. All that it opens is closed after the suite. */
export class Bench {
  readonly db: TestDatabase
  url = ''
  store!: Store
  readonly #opened: { close(): Promise<void> }[] = []
  #tasks = 0

  constructor(db: TestDatabase) {
    this.db = db
  }

  async prepare(): Promise<void> {
    this.url = await this.db.url()
    await migrate(this.url)
    this.store = await this.openStore()
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.map((one) => one.close()))
  }

  /** The name of a task that no other test has. */
  task(): string {
    return `task-${++this.#tasks}`
  }

  async openStore(options: Parameters<typeof openStore>[1] = {}, url = this.url): Promise<Store> {
    return this.#willClose(await openStore(url, options))
  }

  async open<Tasks = AnyTasks>(options: LedgerOptions<Tasks> = {}): Promise<Ledger<Tasks>> {
    return this.#willClose(await openLedger<Tasks>(this.url, { heartbeats: 'loop', ...options }))
  }

  /** A ledger on a store of the test's making, which goes on sharing the connections of this bench; its heartbeats go over `beats`. */
  ledgerOn(store: Store, { patienceMs = 5000, sawOutage = false, beats = store, ...options }: LedgerOptions & { patienceMs?: number; sawOutage?: boolean; beats?: Store } = {}): Ledger {
    const [shared, beating] = [store, beats].map((one) => ({ ...one, close: async () => {} })) as [Store, Store]
    const ledger = new Ledger(shared, new InlinePacemaker(async () => beating), patienceMs, options, sawOutage)
    return this.#willClose(ledger)
  }

  /** Claims and must succeed. */
  async claim(request: ClaimRequest, isDead: DeathCheck = nobodyDied): Promise<Claimed> {
    const outcome = await claim(this.store, request, isDead)
    if (outcome.status !== 'claimed') throw new Error(`${request.taskKey} could not be claimed: ${outcome.reason}`)
    return outcome
  }

  /** The whole row of a run. */
  async row(taskKey: string): Promise<Row> {
    return { ...(await this.store.db.selectFrom('task_runs').selectAll().where('task_key', '=', taskKey).executeTakeFirstOrThrow()) }
  }

  /** The lines of task_attempts of a key, in the order they were written. */
  async attempts(taskKey: string): Promise<Row[]> {
    return this.store.db.selectFrom('task_attempts').selectAll().where('task_key', '=', taskKey).orderBy('id').execute()
  }

  /** Everything recorded of a task: a test that compares it before and after sees whatever was written. */
  async recorded(task: string): Promise<{ runs: Row[]; attempts: Row[] }> {
    const { db } = this.store
    return {
      runs: await db.selectFrom('task_runs').selectAll().where('task_name', '=', task).orderBy('task_key').execute(),
      attempts: await db.selectFrom('task_attempts').selectAll().where('task_name', '=', task).orderBy('id').execute(),
    }
  }

  /** The outcomes of a key's attempts, a conflict with its reason: `['lost', 'conflict held']`. */
  async outcomes(taskKey: string): Promise<string[]> {
    return (await this.attempts(taskKey)).map(({ outcome, reason }) => (outcome === 'conflict' ? `conflict ${String(reason)}` : String(outcome)))
  }

  /** Moves the last heartbeat of a run into the past, as if its owner had been silent since. */
  async age(taskKey: string, seconds = 3600): Promise<void> {
    const { store } = this
    await store.statement((db) => db.updateTable('task_runs').set({ heartbeat_at: store.plusSeconds(store.now(), sql.lit(-seconds)) }).where('task_key', '=', taskKey).execute())
  }

  #willClose<T extends { close(): Promise<void> }>(opened: T): T {
    this.#opened.push(opened)
    return opened
  }
}

export function instance(more: Partial<Instance> = {}): Instance {
  return { id: uuidv7(), host: 'host-a', pid: 4711, processIdentity: null, launcher: 'test', ...more }
}

/** A claim of `task:label` without a window, by an instance of its own, excluding overlap within the task. */
export function request(task: string, label = 'one', more: Partial<ClaimRequest> = {}): ClaimRequest {
  return { taskKey: `${task}:${label}`, task, window: null, concurrencyKey: task, maxAttempts: 3, leaseSeconds: 60, instance: instance(), ...more }
}

/** A window of an hour from an instant on. */
export function hourFrom(start: string, zone = 'UTC'): { start: Date; end: Date; zone: string } {
  return { start: new Date(start), end: new Date(Date.parse(start) + 3_600_000), zone }
}

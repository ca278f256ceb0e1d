/** Real errors of real databases mean what we take them for: the claim, the retries and the exit codes are built on it. */
import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql, type Kysely } from 'kysely'
import type { Diagnosis } from '../../src/dialect/dialect.ts'
import { openLedger } from '../../src/runtime/ledger.ts'
import type { Db, Store } from '../../src/store/tables.ts'
import { eachServerLedger, killSessions } from '../support/each-server.ts'
import { faultProxy } from '../support/fault-proxy.ts'
import { eachLedger, request } from '../support/ledgers.ts'

eachLedger('diagnose', (bench) => {
  async function diagnosisOf(work: () => Promise<unknown>): Promise<Diagnosis> {
    return bench.store.diagnose(await work().then(() => assert.fail('nothing was wrong with it'), (error: unknown) => error))
  }

  it('a key that exists is a duplicate of the primary key', async () => {
    const { taskKey } = await bench.claim(request(bench.task()))
    const again = () => bench.store.db.insertInto('task_runs').values({ task_key: taskKey, task_name: 'x', status: 'pending', available_at: bench.store.now(), created_at: bench.store.now(), attempt: 0, max_attempts: 1, fence: 0n }).execute()
    assert.deepEqual(await diagnosisOf(again), { kind: 'duplicate', constraint: 'primary' })
  })

  it('a concurrency key that is taken is a duplicate of the active key, also for an UPDATE typed by hand', async () => {
    const [task, other] = [bench.task(), bench.task()]
    await bench.claim(request(task))
    const { taskKey } = await bench.claim(request(other))
    const byHand = () => bench.store.db.updateTable('task_runs').set({ active_key: task }).where('task_key', '=', taskKey).execute()
    assert.deepEqual(await diagnosisOf(byHand), { kind: 'duplicate', constraint: 'task_runs_active_key' })
  })

  it('any other unique index goes by its own name', async () => {
    const { store } = bench
    await sql`create table ${store.table('odd')} (id integer primary key, code integer)`.execute(store.db)
    await store.ddl.createIndex(store.db as Kysely<unknown>, { name: 'odd_code', table: 'odd', columns: ['code'], unique: true })
    const insert = (id: number, code: number) => sql`insert into ${store.table('odd')} (id, code) values (${id}, ${code})`.execute(store.db)
    await insert(1, 7)
    assert.deepEqual(await diagnosisOf(() => insert(2, 7)), { kind: 'duplicate', constraint: 'odd_code' })
  })

  it('an unknown table, view or column is a schema that is not there', async () => {
    for (const query of [sql`select 1 from ${bench.store.table('no_such_table')}`, sql`select no_such_column from ${bench.store.table('task_runs')}`]) {
      assert.deepEqual(await diagnosisOf(() => query.execute(bench.store.db)), { kind: 'no_table' })
    }
  })

  it('a violated CHECK, a missing value and a mistake in the SQL are none of these', async () => {
    const { taskKey } = await bench.claim(request(bench.task()))
    const { db } = bench.store
    assert.deepEqual(await diagnosisOf(() => db.updateTable('task_runs').set({ status: 'odd' as 'failed' }).where('task_key', '=', taskKey).execute()), { kind: 'other' })
    assert.deepEqual(await diagnosisOf(() => sql`update ${bench.store.table('task_runs')} set max_attempts = null where task_key = ${taskKey}`.execute(db)), { kind: 'other' })
    assert.deepEqual(await diagnosisOf(() => sql`selct 1`.execute(db)), { kind: 'other' })
  })

  /** Each locks its row, then wants the other's; by `run`, whatever that does about a failure. */
  async function crosswise(run: (store: Store, work: (tx: Db) => Promise<void>) => Promise<void>): Promise<PromiseSettledResult<void>[]> {
    const keys = [(await bench.claim(request(bench.task()))).taskKey, (await bench.claim(request(bench.task()))).taskKey]
    const stores = [bench.store, await bench.openStore()]
    const locked = keys.map(() => Promise.withResolvers<void>())
    const both = Promise.all(locked.map(({ promise }) => promise))
    return Promise.allSettled(
      stores.map((store, me) =>
        run(store, async (tx) => {
          const touch = (key: string) => tx.updateTable('task_runs').set({ launcher: `touched by ${me}` }).where('task_key', '=', key).execute()
          await touch(keys[me]!)
          locked[me]!.resolve()
          await Promise.race([both, sleep(100)]) // Where there is one writer only, the other does not get this far.
          await touch(keys[1 - me]!)
        }),
      ),
    )
  }

  it('of two transactions that lock two rows crosswise one is told that it was rolled back', async () => {
    const ends = await crosswise((store, work) => store.db.transaction().execute(work))
    const victims = ends.filter((end) => end.status === 'rejected').map((end) => bench.store.diagnose(end.reason))
    assert.deepEqual(victims, [{ kind: 'transient' }])
  })

  it('the same two through the dialect are both carried out', async () => {
    const ends = await crosswise((store, work) => store.transaction(work))
    assert.deepEqual(ends.map(({ status }) => status), ['fulfilled', 'fulfilled'])
  })
})

eachServerLedger('diagnose', (bench, db) => {
  let refusals: Record<string, string>
  before(() => {
    const change = (part: 'username' | 'password' | 'pathname' | 'port', value: string) => {
      const url = new URL(bench.url)
      url[part] = value
      return url.href
    }
    refusals = { password: change('password', 'wrong'), user: change('username', 'nobody-of-this-name'), database: change('pathname', '/no_such_database'), 'closed port': change('port', '1') }
  })

  for (const [what, retryable, said] of [
    ['password', false, /refused this user or password/],
    ['user', false, /refused this user/],
    ['database', false, /the database does not exist|refused this user/],
    ['closed port', true, /nobody listens there/],
  ] as const) {
    it(`a wrong ${what} is told in words, and ${retryable ? 'may be better later' : 'asked for once only'}`, async () => {
      const error = await openLedger(refusals[what]!, { connectTimeout: 0 }).then(() => assert.fail('it opened'), (refusal: unknown) => refusal as Error & { code: string; facts: Record<string, unknown> })
      assert.deepEqual([error.code, error.facts['retryable']], ['DATABASE_UNAVAILABLE', retryable])
      assert.match(error.message, said)
    })
  }

  it('a server that takes the connection and says nothing does not answer', async (t) => {
    const proxy = await faultProxy(bench.url)
    t.after(() => proxy.close())
    proxy.mode = 'blackhole'
    await assert.rejects(openLedger(proxy.url, { connectTimeout: '500ms' }), { code: 'DATABASE_UNAVAILABLE', message: /does not answer/ })
  })

  it('a killed session leaves the outcome unknown, and the next statement has another one', async () => {
    const store = await bench.openStore({ poolMax: 1 })
    const error = await store.db
      .transaction()
      .execute(async (tx) => {
        await tx.selectFrom('tasks').selectAll().execute()
        await killSessions(db, bench.url)
        await tx.selectFrom('tasks').selectAll().execute()
      })
      .then(() => assert.fail('it went on'), (reason: unknown) => reason)
    assert.equal(store.diagnose(error).kind, 'unavailable')
    assert.deepEqual(await store.db.selectFrom('tasks').selectAll().execute(), [])
  })
})

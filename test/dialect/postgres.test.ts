/** What is true of PostgreSQL alone: schemas, search paths, its formats of instants, its own words for failure. */
import assert from 'node:assert/strict'
import { after, before, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { every } from '../../src/model/window/schedule.ts'
import { openLedger, type Ledger } from '../../src/runtime/ledger.ts'
import type { LedgerOptions } from '../../src/runtime/ledger-options.ts'
import { openStore } from '../../src/runtime/open-store.ts'
import { migrate } from '../../src/runtime/schema.ts'
import type { Store } from '../../src/store/tables.ts'
import { notBehindPooler } from '../support/databases.ts'
import { session, userUrl } from '../support/each-server.ts'
import { useAll } from '../support/every-verb.ts'
import { onlyOn } from '../support/only-on.ts'

onlyOn('postgres', 'PostgreSQL', (db) => {
  let url: string
  let store: Store
  before(async () => {
    url = await db.url()
    await migrate(url)
    store = await openStore(url)
    await store.db.insertInto('tasks').values({ task_name: 'locked' }).execute()
  })
  after(() => store.close())

  const name = (url: string) => new URL(url).pathname.slice(1)

  async function open(t: TestContext, url: string, options: LedgerOptions = {}): Promise<Ledger> {
    const ledger = await openLedger(url, { heartbeats: 'loop', ...options })
    t.after(() => ledger.close())
    return ledger
  }

  it('case 73: a schema with a space and capitals serves every verb under an empty search path, and a foreign task_runs is untouched', async (t) => {
    const url = await db.url()
    await db.admin(`create table task_runs (id integer); insert into task_runs values (7); alter database ${name(url)} set search_path = ''`, url)
    await useAll(t, `${url}?schema=Job%20Ledger`)
    assert.deepEqual(await db.admin('select * from public.task_runs', url), [{ id: 7 }])
    assert.deepEqual(await db.admin(`select distinct table_schema from information_schema.tables where table_name in ('task_runs', 'task_attempts', 'runledger_migrations', 'task_status') order by 1`, url), [{ table_schema: 'Job Ledger' }, { table_schema: 'public' }])
    assert.deepEqual(await db.admin(`select table_name from information_schema.tables where table_schema = 'public'`, url), [{ table_name: 'task_runs' }])
  })

  it('case 107: a schema name that is SQL is a name', async (t) => {
    const schema = `x"; drop table t;--`
    const url = await db.url()
    await db.admin('create table t (id integer)', url)
    await useAll(t, `${url}?schema=${encodeURIComponent(schema)}`)
    assert.deepEqual(await db.admin(`select table_schema, count(*) > 5 as several from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema') group by 1 order by 1`, url), [
      { table_schema: 'public', several: false },
      { table_schema: schema, several: true },
    ])
  })

  it('instants are read right whatever the formats and the zone of the session are', async (t) => {
    const url = await db.url()
    for (const setting of [`timezone = 'Asia/Kathmandu'`, `intervalstyle = 'sql_standard'`, 'extra_float_digits = 0', `bytea_output = 'escape'`]) await db.admin(`alter database ${name(url)} set ${setting}`, url)
    await migrate(url)
    const ledger = await open(t, url)
    claimedOf(await ledger.claim({ task: 'a', window: every('1h'), at: new Date('2026-03-08T07:30:00Z') }))
    const [run] = await ledger.runs()
    assert.deepEqual(run?.windowStart, new Date('2026-03-08T07:00:00Z'))
    assert.ok(Math.abs(Date.now() - run.heartbeatAt!.getTime()) < 10_000, String(run.heartbeatAt))
  })

  it('a DateStyle in which instants cannot be told apart is refused at the door', { skip: notBehindPooler('PgBouncer keeps the DateStyle that it began with') }, async () => {
    const url = await db.url()
    await migrate(url)
    await db.admin(`alter database ${name(url)} set datestyle = 'SQL, DMY'`, url)
    await assert.rejects(openLedger(url), { code: 'DATABASE_UNAVAILABLE', message: /DateStyle is not ISO/ })
  })

  for (const isolation of ['repeatable read', 'serializable']) {
    it(`of many simultaneous launches one claims, also where ${isolation} is the default`, async (t) => {
      const url = await db.url()
      await db.admin(`alter database ${name(url)} set default_transaction_isolation = '${isolation}'`, url)
      await migrate(url)
      const ledgers = [await open(t, url), await open(t, url)]
      const outcomes = await Promise.all(Array.from({ length: 20 }, (_, i) => ledgers[i % 2]!.claim({ task: 'race', key: 'a' })))
      const claims = outcomes.filter(({ status }) => status === 'claimed').map(claimedOf)
      assert.equal(claims.length, 1)
      await claims[0]!.complete()
    })
  }

  it('sessions that the server ends while they are idle cost a job nothing', async (t) => {
    const url = await db.url()
    await migrate(url)
    await db.admin(`alter database ${name(url)} set idle_session_timeout = '50ms'`, url)
    const outcome = await (await open(t, url)).run({ task: 'idle', key: 'a', lease: '3s', heartbeat: '200ms' }, () => sleep(500))
    assert.equal(outcome.status, 'completed')
  })

  it('a user without the right to make schemas migrates into one that is there', async (t) => {
    const url = await db.url()
    const theirs = new URL(await userUrl(db, url, 'secret'))
    await db.admin(`alter database ${name(url)} owner to current_user; create schema ledger authorization ${theirs.username}`, url)
    await useAll(t, `${theirs.href}?schema=ledger`)
    await assert.rejects(migrate(`${theirs.href}?schema=another`), { code: 'DATABASE_UNAVAILABLE', message: /lacks the right/ })
  })

  it('the primary key of a table that is not the ledger\'s is not ours, by whatever name', async () => {
    const { db: pool } = store
    await sql`create schema audit`.execute(pool)
    for (const table of [sql.id('public', 'audit'), sql.id('audit', 'task_runs')]) {
      await sql`create table ${table} (id integer primary key)`.execute(pool)
      await sql`insert into ${table} values (1)`.execute(pool)
    }
    const again = (schema: string, table: string) => sql`insert into ${sql.id(schema, table)} values (1)`.execute(pool).catch((error: unknown) => store.diagnose(error))
    assert.deepEqual(await again('public', 'audit'), { kind: 'duplicate', constraint: 'audit_pkey' })
    assert.deepEqual(await again('audit', 'task_runs'), { kind: 'duplicate', constraint: 'audit.task_runs_pkey' })
  })

  async function diagnosisOf(setting: string, query: string): Promise<string> {
    const other = await session(url)
    await other.query('begin')
    await other.query(`select * from tasks where task_name = 'locked' for update`)
    const error: unknown = await store.db
      .transaction()
      .execute(async (tx) => {
        await sql.raw(setting).execute(tx)
        await sql.raw(query).execute(tx)
      })
      .then(() => assert.fail('nothing was wrong'), (reason: unknown) => reason)
    await other.end()
    return store.diagnose(error).kind
  }

  for (const [what, setting, query] of [
    ['a lock timeout', `set local lock_timeout = '50ms'`, `select * from tasks where task_name = 'locked' for update`],
    ['a statement timeout', `set local statement_timeout = '50ms'`, `select * from tasks where task_name = 'locked' for update`],
    ['a row that is locked just now', 'select 1', `select * from tasks where task_name = 'locked' for update nowait`],
  ] as const) {
    it(`${what} is transient`, async () => assert.equal(await diagnosisOf(setting, query), 'transient'))
  }

  it('the last connection of a user being taken is no answer yet', { skip: notBehindPooler('a pooler gives two clients one connection') }, async () => {
    const theirs = await userUrl(db, url, 'secret')
    await db.admin(`alter role ${new URL(theirs).username} connection limit 1`, url)
    const first = await session(theirs)
    const second: unknown = await session(theirs).catch((reason: unknown) => reason)
    await first.end()
    assert.equal(store.diagnose(second).kind, 'unavailable')
  })
})

function claimedOf(outcome: Awaited<ReturnType<Ledger['claim']>>) {
  assert.ok(outcome.status === 'claimed', outcome.status)
  return outcome
}

/** Ledgers with different table prefixes share a database without seeing each other; one of them has no prefix at all. */
import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import type { Kysely } from 'kysely'
import { LEDGER_TABLES } from '../../src/dialect/ledger-names.ts'
import { openLedger } from '../../src/runtime/ledger.ts'
import { openStore } from '../../src/runtime/open-store.ts'
import { migrate, migrationStatus } from '../../src/runtime/schema.ts'
import { eachDatabase } from '../support/databases.ts'
import { useAll } from '../support/every-verb.ts'

const PREFIXES = ['', 'app_', 'a2345678901234567890']

eachDatabase('table prefix', (db) => {
  let url = ''
  const prefixed = (prefix: string) => (prefix === '' ? url : `${url}?table_prefix=${prefix}`)
  before(async () => {
    url = await db.url()
  })

  async function tables(): Promise<string[]> {
    const store = await openStore(url)
    const found = await store.db.introspection.getTables()
    await store.close()
    return found.map(({ name }) => name).toSorted()
  }

  it('every table and view that the migrations make is on the list of those that get the prefix', async () => {
    await migrate(url)
    assert.deepEqual((await tables()).filter((name) => name !== 'runledger_lock'), [...LEDGER_TABLES].toSorted())
  })

  it('a ledger is not there for another one, and its migrations are its own', async () => {
    assert.ok((await migrationStatus(prefixed('app_'))).every(({ appliedAt }) => appliedAt === null))
    assert.ok((await migrationStatus(url)).every(({ appliedAt }) => appliedAt !== null))
    const [before, applied] = [await tables(), await migrate(prefixed('app_'))]
    assert.ok(applied.length >= 3)
    assert.deepEqual((await tables()).toSorted(), [...before, ...before.map((name) => `app_${name}`)].toSorted())
  })

  it('cases 73 and 107: every verb works in each of three ledgers in one database, and none sees the others', async (t) => {
    for (const prefix of PREFIXES) await useAll(t, prefixed(prefix))
    for (const prefix of PREFIXES) {
      const ledger = await openLedger(prefixed(prefix))
      t.after(() => ledger.close())
      assert.deepEqual((await ledger.runs()).map(({ taskKey }) => taskKey).filter((key) => !key.startsWith('hourly:')).toSorted(), ['all:a', 'all:b', 'failing:a', 'left:a', 'paid:a', 'queued:a', 'queued:b', 'queued:c', 'queued:d'])
    }
    assert.deepEqual((await tables()).filter((name) => /^(app_|a\d+)?task_runs$/.test(name)), PREFIXES.map((prefix) => `${prefix}task_runs`).toSorted())
  })

  it('constraints go by their own names, without the prefix', async (t) => {
    const store = await openStore(prefixed('app_'))
    t.after(() => store.close())
    await migrate(prefixed('app_'))
    const row = { task_name: 'x', available_at: store.now(), created_at: store.now(), attempt: 1, max_attempts: 1, fence: 0n }
    const held = { ...row, status: 'processing' as const, active_key: 'only', instance_id: 'a', started_at: store.now(), heartbeat_at: store.now(), lease_seconds: 60 }
    const insert = (values: typeof held & { task_key: string }) => store.db.insertInto('task_runs').values(values).execute()
    await insert({ ...held, task_key: 'x:1' })
    for (const [key, active, constraint] of [['x:1', 'other', 'primary'], ['x:2', 'only', 'task_runs_active_key']] as const) {
      const error: unknown = await insert({ ...held, task_key: key, active_key: active }).then(() => assert.fail('it was let in'), (reason: unknown) => reason)
      assert.deepEqual(store.diagnose(error), { kind: 'duplicate', constraint })
    }
  })

  it('only tables of the ledger are renamed in a query, and its own names stay', async (t) => {
    const store = await openStore(prefixed('app_'))
    t.after(() => store.close())
    const other = store.db as unknown as Kysely<Record<string, { task_runs: string }>>
    const { sql: text } = other
      .with('mine', (part) => part.selectFrom('task_runs as r').select('r.task_runs'))
      .selectFrom(['mine', 'theirs', 'tasks'])
      .select(['mine.task_runs', 'theirs.task_runs as task_status', 'tasks.task_runs as t'])
      .compile()
    const plain = text.replace(/["`]/g, '').replace(/\bpublic\./g, '')
    assert.equal(plain, 'with mine as (select r.task_runs from app_task_runs as r) select mine.task_runs, theirs.task_runs as task_status, app_tasks.task_runs as t from mine, theirs, app_tasks')
  })
}, { atOnce: true })

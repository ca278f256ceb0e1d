/** The schema guards the invariants too: no bug, no hand-typed statement and no old version can store what the states forbid. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { isLedgerError, type LedgerError } from '../../src/model/errors.ts'
import { ATTEMPT_OUTCOMES, FAILURE_REASONS, MOVES, STATUSES, type Status } from '../../src/model/states.ts'
import { migrate as migrateStore } from '../../src/migrate/migrate.ts'
import { requireCurrentSchema, schemaState } from '../../src/migrate/schema-state.ts'
import { openLedger } from '../../src/runtime/ledger.ts'
import type { DatabaseName } from '../support/databases.ts'
import { eachLedger } from '../support/ledgers.ts'

/** What a column is set to, as SQL. */
type Columns = Record<string, string>

const AT = `'2026-09-20 10:00:00'`
const owned = { instance_id: `'0199'`, started_at: AT, heartbeat_at: AT, lease_seconds: '60', attempt: '1' }
/** A row of each state as it should be. */
const legal: Record<Status, Columns> = {
  pending: {},
  processing: { ...owned, active_key: `'only'` },
  completed: { ...owned, finished_at: AT },
  failed: { ...owned, finished_at: AT, failure_reason: `'error'` },
}

/** Rows that no state may have: the state that they claim to be in, and what is wrong with it. */
const illegal: [string, Status, Columns][] = [
  ...['', 'Pending', 'pending ', ' pending', 'PROCESSING', 'running', 'cancelled', 'lost', 'pénding'].map((status): [string, Status, Columns] => [`the state ${JSON.stringify(status)}`, 'pending', { status: `'${status}'` }]),
  ['no state', 'pending', { status: 'null' }],
  ...Object.keys(owned).filter((column) => column !== 'attempt').map((column): [string, Status, Columns] => [`processing without ${column}`, 'processing', { [column]: 'null' }]),
  ['processing before the first attempt', 'processing', { attempt: '0' }],
  ...(['pending', 'completed', 'failed'] as const).map((status): [string, Status, Columns] => [`${status} with a claim on its concurrency key`, status, { active_key: `'held'` }]),
  ...(['completed', 'failed'] as const).map((status): [string, Status, Columns] => [`${status} without an end`, status, { finished_at: 'null' }]),
  ...(['pending', 'processing'] as const).map((status): [string, Status, Columns] => [`${status} with an end`, status, { finished_at: AT }]),
  ['failed without a reason', 'failed', { failure_reason: 'null' }],
  ...(['pending', 'processing', 'completed'] as const).map((status): [string, Status, Columns] => [`${status} with a reason to have failed`, status, { failure_reason: `'error'` }]),
  ...['', 'Error', 'error ', 'crash', 'failed'].map((reason): [string, Status, Columns] => [`failed because of ${JSON.stringify(reason)}`, 'failed', { failure_reason: `'${reason}'` }]),
  ['more attempts than it may have', 'pending', { attempt: '4' }],
  ['fewer attempts than none', 'pending', { attempt: '-1' }],
  ['a lease of no time', 'processing', { lease_seconds: '0' }],
  ['a lease of less', 'processing', { lease_seconds: '-1' }],
  ['no key', 'pending', { task_key: 'null' }],
  ['no task', 'pending', { task_name: 'null' }],
  ['no time at which it is due', 'pending', { available_at: 'null' }],
]

/** What the database knows of the indexes of task_runs, with the columns they are on and the conditions they are under. */
const indexes: Record<DatabaseName, string> = {
  sqlite: `select sql as definition from sqlite_master where type = 'index' and tbl_name = 'task_runs' and sql is not null`,
  postgres: `select indexdef as definition from pg_indexes where tablename = 'task_runs'`,
  mariadb: `select column_name as definition from information_schema.statistics where table_schema = database() and table_name = 'task_runs'`,
  mysql: `select column_name as definition from information_schema.statistics where table_schema = database() and table_name = 'task_runs'`,
}

eachLedger('schema', (bench) => {
  let rows = 0
  const query = async (text: string) => (await sql.raw<Record<string, unknown>>(text).execute(bench.store.db)).rows
  const count = async (table: string, where: string) => Number((await query(`select count(*) as n from ${table} where ${where}`))[0]!['n'])
  const insert = (table: string, columns: Columns) => query(`insert into ${table} (${Object.keys(columns).join(', ')}) values (${Object.values(columns).join(', ')})`)
  const runIn = (status: Status, changes: Columns): Columns => ({
    task_key: `'schema:${++rows}'`, task_name: `'schema'`, status: `'${status}'`, available_at: AT, created_at: AT, max_attempts: '3', ...legal[status], ...(status === 'processing' && { active_key: `'only-${rows}'` }), ...changes,
  })

  it('takes a row of every state, and a failed one for every reason', async () => {
    for (const status of STATUSES) await insert('task_runs', runIn(status, {}))
    for (const reason of FAILURE_REASONS) await insert('task_runs', runIn('failed', { failure_reason: `'${reason}'` }))
    assert.equal(await count('task_runs', `task_name = 'schema'`), STATUSES.length + FAILURE_REASONS.length)
  })

  for (const [what, status, changes] of illegal) {
    it(`refuses ${what}`, async () => {
      await assert.rejects(insert('task_runs', runIn(status, changes)))
      assert.equal(await count('task_runs', `task_key = 'schema:${rows}'`), 0)
      await insert('task_runs', runIn(status, {})) // It was not something else that was wrong with it.
    })
  }

  it('refuses every change of state that forgets what goes with it, by hand as well', async () => {
    const moves = new Set(Object.values(MOVES).map(({ from, to }) => `${from} ${to}`))
    for (const move of moves) {
      const [from, to] = move.split(' ') as [Status, Status]
      const row = runIn(from, {})
      await insert('task_runs', row)
      // From pending a state forgets its owner or its end; from processing its claim on the concurrency key stays behind.
      await assert.rejects(query(`update task_runs set status = '${to}' where task_key = ${row['task_key']}`), move)
    }
  })

  it('takes a line of history for every outcome, and for no other', async () => {
    const line = (outcome: string) => insert('task_attempts', { task_key: `'schema:1'`, task_name: `'schema'`, ended_at: AT, outcome: `'${outcome}'` })
    for (const outcome of ATTEMPT_OUTCOMES) await line(outcome)
    for (const other of ['', 'Lost', 'lost ', 'completed', 'processing', 'pending']) await assert.rejects(line(other), JSON.stringify(other))
    assert.equal(await count('task_attempts', `task_key = 'schema:1'`), ATTEMPT_OUTCOMES.length)
  })

  it('lets one processing run have a concurrency key, and any number have none', async () => {
    await insert('task_runs', runIn('processing', { active_key: `'drive'` }))
    await assert.rejects(insert('task_runs', runIn('processing', { active_key: `'drive'` })))
    for (const other of [`'Drive'`, `'drive '`, 'null', 'null']) await insert('task_runs', runIn('processing', { active_key: other }))
  })

  it('has no index that a heartbeat would touch', async () => {
    const definitions = (await query(indexes[bench.db.name])).map((row) => String(row['definition'] ?? row['DEFINITION']))
    assert.ok(definitions.some((definition) => definition.includes('active_key')), 'the question finds indexes at all')
    assert.deepEqual(definitions.filter((definition) => definition.includes('heartbeat_at')), [])
  })

  it('is current after migrate, and says when each part came', async () => {
    await requireCurrentSchema(bench.store)
    const state = await schemaState(bench.store)
    assert.ok(state.length > 0 && state.every(({ known, appliedAt }) => known && Math.abs(appliedAt!.getTime() - Date.now()) < 600_000))
  })

  // The last two of the suite: they break the schema's own record.
  it('of a newer version is refused, by the ledger and by migrate, with what it has ahead, and nothing is changed', async () => {
    await query(`insert into runledger_migrations (name, applied_at) values ('9999-from-the-future', ${AT})`)
    const isAhead = (error: unknown) => isLedgerError(error) && error.code === 'SCHEMA_AHEAD' && error.facts['unknown'] === '9999-from-the-future'

    await assert.rejects(openLedger(bench.url), isAhead)
    await assert.rejects(migrateStore(bench.store), isAhead)

    const { name, known, appliedAt } = (await schemaState(bench.store)).at(-1)!
    assert.deepEqual([name, known, appliedAt instanceof Date], ['9999-from-the-future', false, true])
    await query(`delete from runledger_migrations where name = '9999-from-the-future'`)
    await requireCurrentSchema(bench.store)
  })

  it('of an older version is refused with what it lacks; one that was never there lacks everything', async () => {
    const names = (await schemaState(bench.store)).map(({ name }) => name).join(',')
    const problem = async () => (await requireCurrentSchema(bench.store).catch((error: unknown) => error)) as LedgerError

    await query('delete from runledger_migrations')
    const behind = await problem()
    await query('drop table runledger_migrations')
    const absent = await problem()

    assert.deepEqual([behind, absent].map(({ code, facts }) => [code, facts['missing']]), [['SCHEMA_BEHIND', names], ['SCHEMA_BEHIND', names]])
    assert.match(behind.message, /runledger migrate/)
  })
})

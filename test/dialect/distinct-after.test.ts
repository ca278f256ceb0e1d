/** Distinct values of an index: however many rows share one, about one step each, on every database. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { eachLedger } from '../support/ledgers.ts'
import { enqueue } from '../support/queue.ts'

const KEYS = Array.from({ length: 40 }, (_, nth) => `key-${String(nth).padStart(2, '0')}`)
const RUNS_A_KEY = 100

/** How many entries of indexes this session has read so far. */
const READS = sql<{ seen: number }>`select sum(variable_value) as seen from information_schema.session_status where variable_name in ('Handler_read_key', 'Handler_read_next', 'Handler_read_prev')`

eachLedger('distinct values', (bench) => {
  it('those after one come in order, up to the limit', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, KEYS.flatMap((key) => Array.from({ length: RUNS_A_KEY }, (_, nth) => ({ label: `${key}-${nth}`, concurrencyKey: key }))))
    const { store } = bench
    const after = (value: string, limit: number) => store.distinctAfter(store.db, { table: 'task_runs', column: 'waiting_key', after: value, limit })

    assert.deepEqual(await after('', 1000), KEYS)
    assert.deepEqual(await after('', 3), KEYS.slice(0, 3))
    assert.deepEqual(await after('key-07', 2), ['key-08', 'key-09'])
    assert.deepEqual(await after('key-99', 5), [])
    if (bench.db.name !== 'mariadb') return // The one that says what it reads without more rights than a ledger has.
    await bench.db.admin('analyze table task_runs', bench.url) // As InnoDB does by itself after so many changes.
    const reads = await store.transaction(async (tx) => {
      const before = Number((await READS.execute(tx)).rows[0]!.seen)
      await store.distinctAfter(tx, { table: 'task_runs', column: 'waiting_key', after: '', limit: 1000 })
      return Number((await READS.execute(tx)).rows[0]!.seen) - before
    })
    assert.ok(reads < 20 * KEYS.length, `${reads} reads for ${KEYS.length} values of ${KEYS.length * RUNS_A_KEY} rows`)
  })
})

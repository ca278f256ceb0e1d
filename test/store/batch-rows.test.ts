/** What a batch does to the rows of a queue: it counts and locks those that it means, whatever else is in the table. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { completeMany } from '../../src/store/complete-batch.ts'
import { heartbeatMany } from '../../src/store/heartbeat-batch.ts'
import { reap } from '../../src/store/reap.ts'
import type { Store } from '../../src/store/tables.ts'
import { takeBatch, type TakenRun } from '../../src/store/take-batch.ts'
import { eachServerLedger } from '../support/each-server.ts'
import { eachLedger, instance } from '../support/ledgers.ts'
import { enqueue, take } from '../support/queue.ts'

const done = (runs: readonly TakenRun[]) => runs.map((run) => ({ ...run, result: null }))

eachLedger('rows of a batch', (bench) => {
  it('case 37: two heartbeats of a batch within one tick both succeed, and what is completed is not completed again, whatever the URL says about counting rows', async () => {
    const frozen = bench.store.instant(new Date('2026-09-20T10:00:00Z'))
    const url = bench.db.name === 'sqlite' ? bench.url : `${bench.url}?flags=-FOUND_ROWS`
    for (const store of [bench.store, await bench.openStore({}, url)]) {
      const task = bench.task()
      await enqueue(store, task, ['a', 'b', 'c'].map((label) => ({ label })))
      const held = await take(store, task, 100, instance())
      const still = { ...store, now: () => frozen }

      const beats = [await heartbeatMany(still, held), await heartbeatMany(still, held)]
      const [, stolen] = held
      await store.db.updateTable('task_runs').set({ instance_id: instance().id }).where('task_key', '=', stolen!.taskKey).execute()
      const lost = await completeMany(store, done(held))

      assert.deepEqual(beats.map((beat) => [beat.lost.size, beat.cancelled.size]), [[0, 0], [0, 0]])
      assert.deepEqual([...lost].map(({ taskKey }) => taskKey), [stolen!.taskKey])
    }
  })

  it('case 52: microseconds in the rows stand in nobody’s way: a hundred completions of a hundred', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, Array.from({ length: 100 }, (_, nth) => ({ label: String(nth) })))
    const held = await take(bench.store, task, 100, instance())
    await bench.store.db.updateTable('task_runs').set({ heartbeat_at: sql`'2026-09-20 10:00:00.123456'`, started_at: sql`'2026-09-20 10:00:00.123456'` }).where('task_name', '=', task).execute()

    assert.deepEqual([held.length, (await completeMany(bench.store, done(held))).size], [100, 0])
  })

  it('case 90: sixteen takers of a thousand runs: each is taken once', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, Array.from({ length: 1000 }, (_, nth) => ({ label: String(nth) })))
    const takers = Array.from({ length: 16 }, async () => {
      const [mine, by]: [string[], ReturnType<typeof instance>] = [[], instance()]
      for (let batch = await take(bench.store, task, 7, by); batch.length > 0; batch = await take(bench.store, task, 7, by)) mine.push(...batch.map(({ taskKey }) => taskKey))
      return mine
    })
    const taken = (await Promise.all(takers)).flat()

    const { runs } = await bench.recorded(task)
    assert.deepEqual([taken.length, new Set(taken).size, runs.filter((run) => run['attempt'] === 1).length], [1000, 1000, 1000])
  })

  it('case 83: of fifty expired runs in a queue three reapers at once make fifty lost attempts, and all stand in line again', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, Array.from({ length: 50 }, (_, nth) => ({ label: String(nth), backoffSeconds: 0 })))
    for (const { taskKey } of await take(bench.store, task)) await bench.age(taskKey)

    const stores = [bench.store, await bench.openStore(), await bench.openStore()]
    const reaped = (await Promise.all(stores.map((store) => reap(store)))).flat().filter(({ run }) => run.task === task)

    assert.deepEqual([reaped.length, new Set(reaped.map(({ run }) => run.taskKey)).size], [50, 50])
    const { attempts } = await bench.recorded(task)
    assert.equal(attempts.length, 50)
    assert.deepEqual(attempts.map(({ outcome, attempt }) => [outcome, attempt]), attempts.map(() => ['lost', 1]))
  })
})

/** What InnoDB has locked for this very transaction; its picture of that is a tenth of a second old at most. */
const LOCKED = sql<{ locked: number }>`select coalesce(max(trx_rows_locked), 0) as locked from information_schema.innodb_trx where trx_mysql_thread_id = connection_id()`
const PICTURE_MS = 150

eachServerLedger('locks of a batch', (bench, db) => {
  it('case 30: among twenty thousand completed runs a batch locks no more rows than a few for each of its own', async () => {
    if (db.name === 'postgres') return // Row locks are in the rows there, and no ranges are locked.
    const [task, batch] = [bench.task(), 20]
    await enqueue(bench.store, task, Array.from({ length: 1000 }, (_, nth) => ({ label: String(nth) })))
    for (let held = await take(bench.store, task, 900); held.length > 0; held = []) await completeMany(bench.store, done(held))
    for (let copies = 1; copies < 20; copies++) await db.admin(copyOfCompleted(task, copies), bench.url)
    await db.admin('analyze table task_runs', bench.url)

    let locked = 0
    const watched: Store = { ...bench.store, transaction: (work) => bench.store.transaction(async (tx) => {
      const answer = await work(tx)
      await sleep(PICTURE_MS)
      const { rows } = await LOCKED.execute(tx)
      locked = Number(rows[0]!.locked)
      return answer
    }) }
    const counts: Record<string, number> = {}
    const by = instance()
    const { runs } = await takeBatch(watched, { queue: task, tasks: [task], limit: batch, leaseSeconds: 60, instance: by })
    counts['take'] = locked
    await watched.transaction((tx) => heartbeatMany({ ...watched, statement: (work) => work(tx) }, runs))
    counts['heartbeat'] = locked
    await watched.transaction((tx) => completeMany({ ...watched, statement: (work) => work(tx) }, done(runs)))
    counts['complete'] = locked
    for (const { taskKey } of await take(bench.store, task, batch, by)) await bench.age(taskKey)
    await reap(watched)
    counts['reap'] = locked

    assert.equal(runs.length, batch)
    // Measured: one or two for each, its entry in an index being a row to InnoDB as well.
    for (const [what, count] of Object.entries(counts)) assert.ok(count > 0 && count <= 3 * batch, `${what} of ${batch} locks ${count} rows`)
  })
}, { atOnce: true })

/** The rows of what is completed once more, under keys of their own. */
function copyOfCompleted(task: string, nth: number): string {
  return `create temporary table copies as select * from task_runs where task_name = '${task}' and status = 'completed' and task_key not like '%/%';
    update copies set task_key = concat(task_key, '/${nth}'); insert into task_runs select * from copies; drop temporary table copies`
}

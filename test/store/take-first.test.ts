/** The first in line by one statement: the same run that a batch would take first, under the same guards. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import pg from 'pg'
import type { Store } from '../../src/store/tables.ts'
import { completeMany } from '../../src/store/complete-batch.ts'
import { bumpFences } from '../../src/store/fence.ts'
import type { TakenRun } from '../../src/store/take-batch.ts'
import { takeFirst } from '../../src/store/take-first.ts'
import { eachLedger, instance } from '../support/ledgers.ts'
import { enqueue, labels } from '../support/queue.ts'

eachLedger('the first in line', (bench) => {
  if (bench.db.name !== 'postgres') {
    it('is no one statement here', () => assert.equal(bench.store.updatesInOne, false))
    return
  }

  const first = (task: string, tasks = [task], store: Store = bench.store) => takeFirst(store, { queue: task, tasks, limit: 1, leaseSeconds: 60, instance: instance() })

  async function taken(task: string): Promise<TakenRun[]> {
    const runs: TakenRun[] = []
    for (let one = await first(task); one?.runs.length; one = await first(task)) runs.push(...one.runs)
    return runs
  }

  it('takes one after the other in the order of the line, each with what its handler needs, in a single statement', async () => {
    const [task, statements] = [bench.task(), [] as string[]]
    await enqueue(bench.store, task, [{ label: 'b', payload: '{"n":1}', timeoutSeconds: 7 }, { label: 'a' }, { label: 'urgent', priority: -1 }])
    const store = await bench.openStore({ log: ({ query }) => void statements.push(query.sql) })

    const urgent = await first(task, [task], store)
    const [b, a] = await taken(task)

    assert.deepEqual([labels(urgent!.runs), labels([b!, a!]), statements.length], [['urgent'], ['b', 'a'], 1])
    assert.deepEqual([b!.payload, b!.timeoutSeconds, b!.attempt, b!.maxAttempts], ['{"n":1}', 7, 1, 3])
    const row = await bench.row(b!.taskKey)
    assert.deepEqual([row['status'], row['instance_id'], row['attempt'], BigInt(String(row['fence'])), row['ready_queue']], ['processing', b!.instanceId, 1, b!.fence, null])
    assert.deepEqual([...(await completeMany(bench.store, [{ ...b!, result: null }]))], [])
    assert.deepEqual(await first(task), { runs: [], seen: 0, last: undefined })
  })

  it('of eight takers no two get the same run, and together they get all', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, Array.from({ length: 80 }, (_, nth) => ({ label: String(nth) })))

    const all = (await Promise.all(Array.from({ length: 8 }, () => taken(task)))).flat()

    // One that sees the row in front locked passes it over; so somebody may find nothing for a moment, and the next one finds the rest.
    const keys = [...all, ...(await taken(task))].map(({ taskKey }) => taskKey)
    assert.deepEqual([keys.length, new Set(keys).size], [80, 80])
  })

  it('leaves a run with a concurrency key as it is: its key is decided in a transaction', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [{ label: 'keyed', concurrencyKey: `${task}-k` }, { label: 'behind' }])
    const before = await bench.row(`${task}:keyed`)

    assert.equal(await first(task), null)

    assert.deepEqual([await bench.row(`${task}:keyed`), (await bench.row(`${task}:behind`))['status']], [before, 'pending'])
  })

  it('passes over what is locked, of another task, paused, typed into another state, or of a window that was pruned', async () => {
    const [task, paused] = [bench.task(), bench.task()]
    const { store } = bench
    await enqueue(store, task, [{ label: 'locked' }, { label: 'theirs', task: 'somebody-else' }, { label: 'paused', task: paused }, { label: 'typed' }, { label: 'old' }, { label: 'new' }, { label: 'mine' }])
    for (const [label, start] of [['old', '2026-09-20T10:00:00Z'], ['new', '2026-09-20T11:00:00Z']] as const) {
      await store.db.updateTable('task_runs').set({ window_start: store.instant(new Date(start)), window_end: store.instant(new Date(start)), window_zone: 'UTC' }).where('task_key', '=', `${task}:${label}`).execute()
    }
    await store.db.insertInto('tasks').values([{ task_name: paused, paused_at: store.now() }, { task_name: task, pruned_before: store.instant(new Date('2026-09-20T10:30:00Z')) }]).execute()
    await sql`update ${store.table('task_runs')} set status = 'failed', failure_reason = 'error', finished_at = ${store.now()} where task_key = ${`${task}:typed`}`.execute(store.db)

    await store.transaction(async (tx) => {
      await tx.selectFrom('task_runs').select('task_key').where('task_key', '=', `${task}:locked`).forUpdate().execute()
      const runs = [await first(task, [task, paused]), await first(task, [task, paused]), await first(task, [task, paused])].flatMap((one) => one!.runs)
      assert.deepEqual(labels(runs), ['new', 'mine'])
    })
    assert.deepEqual(labels(await taken(task)), ['locked'])
  })

  it('is expected to read one run and not the whole line, whatever the statistics say: what is dear, PostgreSQL compiles first', async () => {
    const [task, heard] = [bench.task(), [] as { sql: string; parameters: readonly unknown[] }[]]
    await enqueue(bench.store, task, Array.from({ length: 2_000 }, (_, nth) => ({ label: String(nth) })))
    await bench.db.admin('analyze task_runs', bench.url)
    const store = await bench.openStore({ log: ({ query }) => void heard.push(query) })
    await first(task, [task], store)

    const client = new pg.Client(bench.url)
    await client.connect()
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: { 'Total Cost': number } }] }>(`explain (format json) ${heard[0]!.sql}`, [...heard[0]!.parameters])
    await client.end()

    const cost = rows[0]!['QUERY PLAN'][0].Plan['Total Cost']
    assert.ok(cost < 500, `${cost}: of eight a run, that is the line and not its head`)
  })

  it('case 69: its fence comes through whole beyond 2^53, and is above a bump', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [{ label: 'a' }])
    await bench.store.db.updateTable('task_runs').set({ fence: 9007199254740993n }).where('task_key', '=', `${task}:a`).execute()
    assert.equal((await first(task))!.runs[0]!.fence, 9007199254740994n)

    await bumpFences(bench.store, 1000n)
    await enqueue(bench.store, task, [{ label: 'b' }])
    const [b] = await taken(task)
    assert.ok(b!.fence > 1000n)
    assert.equal(BigInt(String((await bench.row(b!.taskKey))['fence'])), b!.fence)
  })
})

/** What people and programs read: runs, newest first, and everything that happened to a key, in order. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { complete, fail, release } from '../../src/store/close.ts'
import { recordConflict } from '../../src/store/conflict.ts'
import { listRuns, readHistory } from '../../src/store/list-runs.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { readRun } from '../../src/store/read-run.ts'
import { eachLedger, request } from '../support/ledgers.ts'

eachLedger('list', (bench) => {
  const createdAgo = (taskKey: string, seconds: number) => bench.store.db.updateTable('task_runs').set({ created_at: bench.store.plusSeconds(bench.store.now(), sql.lit(-seconds)) }).where('task_key', '=', taskKey).execute()

  it('runs come newest first, as many as asked for, of one task, in one state, since an instant', async () => {
    const task = bench.task()
    for (const [label, seconds] of [['old', 300], ['middle', 200], ['new', 100]] as const) {
      await queueRun(bench.store, request(task, label, { concurrencyKey: null }))
      await createdAgo(`${task}:${label}`, seconds)
    }
    await bench.claim(request(task, 'middle'))
    await queueRun(bench.store, request(bench.task()))
    const labels = async (filter: Partial<Parameters<typeof listRuns>[1]>) => (await listRuns(bench.store, { task, limit: 50, ...filter })).map(({ taskKey }) => taskKey.slice(task.length + 1))

    assert.deepEqual(await labels({}), ['new', 'middle', 'old'])
    assert.deepEqual(await labels({ limit: 2 }), ['new', 'middle'])
    assert.deepEqual(await labels({ status: 'processing' }), ['middle'])
    assert.deepEqual(await labels({ since: new Date(Date.now() - 250_000) }), ['new', 'middle'])
    assert.ok((await listRuns(bench.store, { limit: 50 })).length > 3, 'without a task: all of them')
  })

  it('the history of a key has every attempt and every launch that lost, in the order of their ends, the running one last', async () => {
    const task = bench.task()
    const end = async (seconds: number) => {
      const last = await bench.store.db.selectFrom('task_attempts').select('id').where('task_name', '=', task).orderBy('id', 'desc').limit(1).executeTakeFirstOrThrow()
      await bench.store.db.updateTable('task_attempts').set({ ended_at: bench.store.plusSeconds(bench.store.now(), sql.lit(-seconds)) }).where('id', '=', last.id).execute()
    }
    await release(bench.store, await bench.claim(request(task)), {})
    await end(50)
    const failing = await bench.claim(request(task))
    const loser = request(task)
    await recordConflict(bench.store, loser, { status: 'conflict', reason: 'held', taskKey: loser.taskKey, holder: null, dueAt: null })
    await end(40)
    await fail(bench.store, failing, 'exit', { exitCode: 3 }, 0)
    await end(30)
    const running = await bench.claim(request(task))

    const history = async () => (await readHistory(bench.store, running.taskKey)).map(({ outcome, reason, attempt }) => `${outcome} ${reason ?? ''} ${attempt ?? ''}`)

    assert.deepEqual(await history(), ['released  1', 'conflict held ', 'failed exit 1', 'processing  2'])
    await complete(bench.store, running, {})
    assert.deepEqual(await history(), ['released  1', 'conflict held ', 'failed exit 1', 'completed  2'])
  })

  it('of a key that never ran the history still knows who wanted it', async () => {
    const loser = request(bench.task())
    await recordConflict(bench.store, loser, { status: 'conflict', reason: 'paused', taskKey: loser.taskKey, holder: null, dueAt: null })

    const history = await readHistory(bench.store, loser.taskKey)

    assert.deepEqual(history.map(({ outcome, reason, instanceId }) => [outcome, reason, instanceId]), [['conflict', 'paused', loser.instance.id]])
    assert.equal(await readRun(bench.store, loser.taskKey), null)
  })

  it('instants come back as they were, wherever server and reader think they are', async () => {
    const task = bench.task()
    const instants = ['2026-09-20T10:00:00.454Z', '1969-12-31T23:59:59.999Z', '2500-01-01T12:00:00.000Z', '2026-03-29T01:30:00.000Z', '2026-10-25T00:30:00.001Z']
    for (const start of instants) await bench.claim(request(task, start, { concurrencyKey: null, window: { start: new Date(start), end: new Date(Date.parse(start) + 1), zone: 'UTC' } }))

    for (const start of instants) {
      const run = await readRun(bench.store, `${task}:${start}`)
      assert.deepEqual([run?.windowStart, run?.windowEnd], [new Date(start), new Date(Date.parse(start) + 1)])
    }
  })
})

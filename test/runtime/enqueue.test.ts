/** Enqueueing: in a transaction of our own or of the caller's, once by key, and told to whoever listens. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Enqueued } from '../../src/index.ts'
import { cutConnection, interrupted, once } from '../support/failing-store.ts'
import { isPooled } from '../support/databases.ts'
import { eachLedger } from '../support/ledgers.ts'
import { startWorker } from '../support/workers.ts'
import { callersOf } from './caller.ts'

eachLedger('enqueue', (bench) => {
  for (const [nth, open] of callersOf(bench.db.name).entries()) {
    it(`case 54: in the caller's transaction (kind ${nth + 1}) a duplicate is a value, and the transaction goes on`, async () => {
      const [ledger, task] = [await bench.open(), bench.task()]
      await ledger.enqueue(task, { key: 'there' })
      const caller = await open(bench.url)

      const outcome = await ledger.enqueueMany(task, [{ key: 'there' }, { key: 'new' }, { key: 'new' }], { tx: caller.connection })
      await caller.run(`insert into tasks (task_name) values ('${task}-data')`)
      await caller.commit()

      assert.deepEqual(outcome.map(({ duplicate }) => duplicate), [true, false, true])
      assert.equal((await bench.recorded(task)).runs.length, 2)
      assert.equal((await bench.store.db.selectFrom('tasks').select('task_name').where('task_name', '=', `${task}-data`).execute()).length, 1)
    })

    it(`in the caller's transaction (kind ${nth + 1}) nothing is written when one far back in the bulk is refused`, async () => {
      const [ledger, task] = [await bench.open(), bench.task()]
      const caller = await open(bench.url)

      await assert.rejects(ledger.enqueueMany(task, oneBadOf(2500), { tx: caller.connection }), { code: 'INVALID_OPTION' })
      await caller.commit()

      assert.deepEqual((await bench.recorded(task)).runs, [])
    })

    it(`what is enqueued in a transaction (kind ${nth + 1}) that is rolled back was never there`, async () => {
      const [ledger, task] = [await bench.open(), bench.task()]
      const caller = await open(bench.url)

      await ledger.enqueue(task, { key: 'a' }, { tx: caller.connection })
      await caller.rollback()

      assert.deepEqual((await bench.recorded(task)).runs, [])
    })
  }

  it('of a bulk in which one is refused, none is enqueued', async () => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await assert.rejects(ledger.enqueueMany(task, [{ key: 'good' }, { key: 'bad', priority: 1.5 }]), { code: 'INVALID_OPTION' })
    await assert.rejects(ledger.enqueueMany(task, [{ key: 'good' }, { key: 'x'.repeat(300) }]), { code: 'INVALID_OPTION' })
    await assert.rejects(ledger.enqueueMany(task, oneBadOf(2500)), { code: 'INVALID_OPTION' })
    assert.deepEqual((await bench.recorded(task)).runs, [])
  })

  for (const count of [1, 2500]) {
    it(`${count} without keys whose answer was lost are asked for again, and are there once`, async () => {
      const task = bench.task()
      const ledger = bench.ledgerOn(interrupted(bench.store, once(count === 1 ? 'after statement' : 'after transaction', cutConnection)))

      const outcome: Enqueued[] = await ledger.enqueueMany(task, Array.from({ length: count }, () => ({})))

      assert.deepEqual([outcome.length, new Set(outcome.map(({ taskKey }) => taskKey)).size, (await bench.recorded(task)).runs.length], [count, count, count])
      assert.ok(outcome.every(({ duplicate }) => duplicate))
    })
  }

  it('three thousand at once are there, in their order, and keys of their own are ordered by time', async () => {
    const [ledger, task] = [await bench.open(), bench.task()]

    const outcome: Enqueued[] = await ledger.enqueueMany(task, Array.from({ length: 3000 }, (_, payload) => ({ payload })))

    assert.equal(outcome.filter(({ duplicate }) => duplicate).length, 0)
    const rows = await bench.store.db.selectFrom('task_runs').select(['task_key', 'payload']).where('task_name', '=', task).orderBy('position').execute()
    assert.deepEqual(rows.map((row) => Number(row.payload)), Array.from({ length: 3000 }, (_, nth) => nth))
    const times = rows.map((row) => row.task_key.slice(task.length + 1, task.length + 14))
    assert.deepEqual(times, times.toSorted())
  })

  it('a worker that hears of it begins at once where the database can tell, and by its next poll everywhere', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    const hears = bench.db.name === 'postgres' && !isPooled(bench.db.name) // A pooler hands out sessions by the transaction: nobody can listen.
    const poll = hears ? '30s' : '200ms'
    const { ended, until } = await startWorker(t, ledger, { queues: [task], poll, handlers: { [task]: () => {} } })
    await until(({ event }) => event === 'connected')
    for (let nth = 1; nth <= 3; nth++) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      const sentAt = performance.now()
      await ledger.enqueue(task, { queue: task })
      await ended('completed', nth)
      assert.ok(performance.now() - sentAt < 5_000, `${performance.now() - sentAt} ms`)
    }
  })

  it('an idle worker asks once an interval', async (t) => {
    const task = bench.task()
    let statements = 0
    const store = await bench.openStore({ log: () => void statements++ })
    const counted = bench.ledgerOn(store)
    const { until } = await startWorker(t, counted, { queues: [task], poll: '200ms', handlers: { [task]: () => {} } })
    await until(({ event }) => event === 'connected')
    await new Promise((resolve) => setTimeout(resolve, 600)) // The first look also tends the line.
    statements = 0

    await new Promise((resolve) => setTimeout(resolve, 1_600))

    assert.ok(statements <= 12, `${statements} statements in 8 intervals of 150 to 250 ms`)
  })
}, { atOnce: true })

/** The last but one is refused. */
function oneBadOf(count: number): { priority?: number }[] {
  return Array.from({ length: count }, (_, nth) => (nth === count - 2 ? { priority: 1.5 } : {}))
}

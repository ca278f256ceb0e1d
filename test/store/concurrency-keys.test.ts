/** Concurrency keys: never more at a time than the limit, in order where the limit is one, and no key waits for another. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { completeMany, freeKeys } from '../../src/store/complete-batch.ts'
import { complete } from '../../src/store/close.ts'
import { sweepLine, SWEEP_START } from '../../src/store/sweep-line.ts'
import type { TakenRun } from '../../src/store/take-batch.ts'
import { eachLedger, request } from '../support/ledgers.ts'
import { enqueue, labels, take } from '../support/queue.ts'

eachLedger('concurrency keys', (bench) => {
  const done = (runs: readonly TakenRun[]) => completeMany(bench.store, runs.map((run) => ({ ...run, result: null })))

  it('one at a time, in the order of enqueueing, each with a greater fence than the one before', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, ['z', 'a', 'm'].map((label) => ({ label, concurrencyKey: `${task}-k` })))
    const order: string[] = []
    let fence = 0n
    for (let turn = 0; turn < 3; turn++) {
      const [run, ...more] = await take(bench.store, task)
      assert.deepEqual([more, await take(bench.store, task)], [[], []], 'only one, whoever asks')
      assert.ok(run!.fence > fence)
      fence = run!.fence
      order.push(...labels([run!]))
      await done([run!])
    }
    assert.deepEqual(order, ['z', 'a', 'm'])
  })

  it('up to the limit, each in a slot of its own, and the next comes forward as one is done', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, ['a', 'b', 'c', 'd'].map((label) => ({ label, concurrencyKey: `${task}-k`, concurrencyLimit: 2 })))

    const first = await take(bench.store, task)
    assert.deepEqual([labels(first), await take(bench.store, task)], [['a', 'b'], []])
    assert.deepEqual((await bench.recorded(task)).runs.map((run) => run['active_key']), [`${task}-k`, `${task}-k#2`, null, null])
    await done(first.slice(1))

    const second = await take(bench.store, task)
    assert.deepEqual(labels(second), ['c'])
    assert.equal((await bench.row(second[0]!.taskKey))['active_key'], `${task}-k#2`)
  })

  it('a long line behind one key is parked together, and still goes in its order', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, Array.from({ length: 60 }, (_, nth) => ({ label: String(nth), concurrencyKey: `${task}-k` })))
    const isReady = async () => (await bench.recorded(task)).runs.filter((run) => run['ready_queue'] !== null).length

    const [first] = await take(bench.store, task, 5)
    assert.equal(await isReady(), 0, 'not five a claim')
    await done([first!])
    assert.equal(await isReady(), 1)

    const order = labels([first!])
    for (let nth = 1; nth < 60; nth++) {
      const [run] = await take(bench.store, task, 5)
      order.push(...labels([run!]))
      await done([run!])
    }
    assert.deepEqual(order, Array.from({ length: 60 }, (_, nth) => String(nth)))
  })

  it('a blocked run leaves the index of what is ready once, and others behind it in line are taken', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [...Array.from({ length: 50 }, (_, nth) => ({ label: `blocked-${nth}`, concurrencyKey: `${task}-k` })), { label: 'free' }])

    assert.deepEqual(labels(await take(bench.store, task)), ['blocked-0', 'free'])

    const ready = (await bench.recorded(task)).runs.filter((run) => run['ready_queue'] !== null)
    assert.deepEqual(ready, [])
  })

  it('a run of an older launch under the same key is in the way too, and what waits for it is found by the sweep', async () => {
    const task = bench.task()
    const held = await bench.claim(request(task, 'window'))
    await enqueue(bench.store, task, [{ label: 'queued', concurrencyKey: task }])
    assert.deepEqual(await take(bench.store, task), [])
    await complete(bench.store, held, {})
    assert.deepEqual(await take(bench.store, task), [], 'the launch knows nothing of the line')

    let cursor = SWEEP_START
    do cursor = (await sweepLine(bench.store, cursor)).next
    while (cursor.key !== '')

    const [run] = await take(bench.store, task)
    assert.deepEqual(labels([run!]), ['queued'])
    assert.ok(run!.fence > held.fence)
  })

  it('a hand-typed UPDATE to pending is put in line by the sweep', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [{ label: 'a' }])
    await done(await take(bench.store, task))
    await bench.store.statement((db) => db.updateTable('task_runs').set({ status: 'pending', finished_at: null }).where('task_key', '=', `${task}:a`).execute())
    assert.deepEqual(await take(bench.store, task), [])

    for (let cursor = SWEEP_START, rounds = 0; rounds === 0 || cursor.task !== ''; rounds++) cursor = (await sweepLine(bench.store, cursor)).next

    assert.deepEqual(labels(await take(bench.store, task)), ['a'])
  })

  it('whoever closes a run in another way lets the next one forward', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, ['a', 'b'].map((label) => ({ label, concurrencyKey: `${task}-k` })))
    const [a] = await take(bench.store, task)
    await complete(bench.store, a!, {})

    await freeKeys(bench.store, [`${task}-k`])

    assert.deepEqual(labels(await take(bench.store, task)), ['b'])
  })

  it('eight takers over forty keys never hold two runs of a key, and do all of them in order', async () => {
    const task = bench.task()
    const stores = await Promise.all(Array.from({ length: 4 }, () => bench.openStore()))
    await enqueue(bench.store, task, Array.from({ length: 200 }, (_, nth) => ({ label: String(nth), concurrencyKey: `${task}-${nth % 40}` })))
    const held = new Map<string, string>()
    const order = new Map<string, number[]>()
    let left = 200
    const worker = async (nth: number) => {
      const store = stores[nth % 4]!
      for (let idle = 0; left > 0 && idle < 200; idle++) {
        const runs = await take(store, task, 7)
        for (const run of runs) {
          assert.equal(held.get(run.concurrencyKey!), undefined, `${run.taskKey} beside ${held.get(run.concurrencyKey!)}`)
          held.set(run.concurrencyKey!, run.taskKey)
          order.set(run.concurrencyKey!, [...(order.get(run.concurrencyKey!) ?? []), Number(labels([run])[0])])
        }
        if (runs.length === 0) {
          await sweepLine(store, SWEEP_START)
          continue
        }
        idle = 0
        left -= runs.length
        for (const run of runs) held.delete(run.concurrencyKey!)
        await completeMany(store, runs.map((run) => ({ ...run, result: null })))
      }
    }

    await Promise.all(Array.from({ length: 8 }, (_, nth) => worker(nth)))

    assert.equal(left, 0)
    for (const numbers of order.values()) assert.deepEqual(numbers, numbers.toSorted((a, b) => a - b))
  })
})

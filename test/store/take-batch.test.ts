/** Batches: who is first in line is taken first, nobody twice, and nothing that is not due, paused or somebody else's. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { completeMany } from '../../src/store/complete-batch.ts'
import { fail } from '../../src/store/close.ts'
import { bumpFences } from '../../src/store/fence.ts'
import { heartbeatMany } from '../../src/store/heartbeat-batch.ts'
import { takeRuns } from '../../src/store/prune.ts'
import { reap } from '../../src/store/reap.ts'
import { releaseMany } from '../../src/store/release-batch.ts'
import type { Place } from '../../src/store/ready-rows.ts'
import { takeBatch } from '../../src/store/take-batch.ts'
import { look, promote } from '../../src/store/tend-line.ts'
import { eachLedger, instance } from '../support/ledgers.ts'
import { enqueue, labels, take } from '../support/queue.ts'

eachLedger('batches', (bench) => {
  it('the better priority comes first, then the order of enqueueing, whatever the keys', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [{ label: 'z' }, { label: 'y', priority: 5 }, { label: 'b' }, { label: 'a' }])
    await enqueue(bench.store, task, [{ label: '0' }, { label: 'x', priority: -1 }])

    assert.deepEqual(labels(await take(bench.store, task, 4)), ['x', 'z', 'b', 'a'])
    assert.deepEqual(labels(await take(bench.store, task)), ['0', 'y'])
    assert.deepEqual(await take(bench.store, task), [])
  })

  it('a claim that goes on where the last one ended sees nothing in front of it, and says where it ended itself', async () => {
    const task = bench.task()
    const claim = (limit: number, after?: Place) => takeBatch(bench.store, { queue: task, tasks: [task], limit, after, leaseSeconds: 60, instance: instance() })
    await enqueue(bench.store, task, ['a', 'b', 'c', 'd', 'e'].map((label) => ({ label, priority: 1 })))
    const first = await claim(2)
    await releaseMany(bench.store, first.runs)
    await enqueue(bench.store, task, [{ label: 'better' }])

    const second = await claim(2, first.last)
    const third = await claim(2, second.last)

    assert.deepEqual([first, second, third].map(({ runs, seen }) => [labels(runs).join(''), seen]), [['ab', 2], ['cd', 2], ['e', 1]])
    assert.deepEqual(labels((await claim(9)).runs), ['better', 'a', 'b'])
  })

  it('in bulk too a key that is there is a duplicate, left as it is', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [{ label: 'a', payload: '{"first":true}' }])
    const [held] = await take(bench.store, task)

    assert.deepEqual(await enqueue(bench.store, task, [{ label: 'b' }, { label: 'a', payload: '{"second":true}', priority: 9 }]), [`${task}:b`])

    const row = await bench.row(held!.taskKey)
    assert.deepEqual([row['status'], JSON.parse(String(row['payload'])), row['priority']], ['processing', { first: true }, 0])
  })

  it('sixteen that enqueue the same hundred keys in different orders put each in line once', async () => {
    const task = bench.task()
    const runs = Array.from({ length: 100 }, (_, nth) => ({ label: String(nth) }))
    const stores = await Promise.all(Array.from({ length: 4 }, () => bench.openStore()))

    const added = await Promise.all(Array.from({ length: 16 }, (_, nth) => enqueue(stores[nth % 4]!, task, nth % 2 === 0 ? runs : runs.toReversed())))

    assert.deepEqual(added.flat().toSorted(), runs.map(({ label }) => `${task}:${label}`).toSorted())
  })

  it('of eight takers no two get the same run, and together they get all', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, Array.from({ length: 400 }, (_, nth) => ({ label: String(nth) })))
    const stores = await Promise.all(Array.from({ length: 8 }, () => bench.openStore()))
    const takeAll = async (nth: number) => {
      const taken: string[] = []
      for (let batch = await take(stores[nth]!, task, 20); batch.length > 0; batch = await take(stores[nth]!, task, 20)) taken.push(...labels(batch))
      return taken
    }

    const taken = (await Promise.all(stores.map((_, nth) => takeAll(nth)))).flat()

    assert.deepEqual([taken.length, new Set(taken).size], [400, 400])
    assert.equal((await bench.recorded(task)).runs.filter((run) => run['attempt'] !== 1 || run['status'] !== 'processing').length, 0)
  })

  it('case 45: what is due in the year 2500 is kept as it is and taken by nobody; what is due by now is', async () => {
    const task = bench.task()
    const far = new Date('2500-01-01T12:00:00Z')
    await enqueue(bench.store, task, [{ label: 'far', availableAt: far }, { label: 'soon', availableAt: 3600 }, { label: 'past', availableAt: new Date(Date.now() - 60_000) }])
    assert.deepEqual(await take(bench.store, task), [])

    while ((await promote(bench.store)) > 0);

    assert.deepEqual(labels(await take(bench.store, task)), ['past'])
    assert.deepEqual(bench.store.readInstant((await bench.row(`${task}:far`))['available_at']), far)
  })

  it('what comes due stands in line behind nobody that was enqueued later', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [{ label: 'delayed', availableAt: 3600 }])
    await enqueue(bench.store, task, [{ label: 'at once' }])
    await bench.store.statement((db) => db.updateTable('task_runs').set({ due_at: bench.store.now(), available_at: bench.store.now() }).where('task_name', '=', task).where('due_at', 'is not', null).execute())
    assert.equal((await look(bench.store, [task], [task])).due, true)

    await promote(bench.store)

    assert.deepEqual(labels(await take(bench.store, task)), ['delayed', 'at once'])
  })

  it('a paused task and another task of the queue stay in line', async () => {
    const [task, paused] = [bench.task(), bench.task()]
    await enqueue(bench.store, task, [{ label: 'mine' }, { label: 'theirs', task: 'somebody-else' }, { label: 'paused', task: paused }])
    await bench.store.statement((db) => db.insertInto('tasks').values({ task_name: paused, paused_at: bench.store.now() }).execute())
    const { takeBatch } = await import('../../src/store/take-batch.ts')

    const { runs } = await takeBatch(bench.store, { queue: task, tasks: [task, paused], limit: 10, leaseSeconds: 60, instance: instance() })

    assert.deepEqual(labels(runs), ['mine'])
  })

  it('case 92: a row that somebody typed into another state is not taken', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [{ label: 'typed' }, { label: 'good' }])
    await bench.store.statement((db) => sql`update ${bench.store.table('task_runs')} set status = 'failed', failure_reason = 'error', finished_at = ${bench.store.now()} where task_key = ${`${task}:typed`}`.execute(db))

    assert.deepEqual(labels(await take(bench.store, task)), ['good'])
  })

  it('case 85: a batch completes only what is still its own, and says what is not', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [{ label: 'kept' }, { label: 'lost' }, { label: 'result' }])
    const mine = await take(bench.store, task)
    await bench.age(`${task}:lost`)
    await reap(bench.store)
    const [theirs] = await take(bench.store, task)

    const lost = await completeMany(bench.store, mine.map((run) => ({ ...run, result: run.taskKey.endsWith('result') ? '{"n":1}' : null })))

    assert.deepEqual(labels([...lost]), ['lost'])
    const [kept, result, other] = [await bench.row(`${task}:kept`), await bench.row(`${task}:result`), await bench.row(`${task}:lost`)]
    assert.deepEqual([kept['status'], result['status'], JSON.parse(String(result['result']))], ['completed', 'completed', { n: 1 }])
    assert.deepEqual([other['status'], other['attempt'], other['instance_id']], ['processing', 2, theirs!.instanceId])
    assert.ok(theirs!.fence > mine.find(({ taskKey }) => taskKey === theirs!.taskKey)!.fence)
  })

  it('a batch of heartbeats renews what is ours and names what is not, and what is to stop', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, ['kept', 'lost', 'cancelled'].map((label) => ({ label })))
    const mine = await take(bench.store, task)
    for (const { taskKey } of mine) await bench.age(taskKey, 30)
    await fail(bench.store, mine.find(({ taskKey }) => taskKey.endsWith('lost'))!, 'error', {}, null)
    await bench.store.statement((db) => db.updateTable('task_runs').set({ cancel_requested_at: bench.store.now() }).where('task_key', '=', `${task}:cancelled`).execute())

    const { lost, cancelled } = await heartbeatMany(bench.store, mine)

    assert.deepEqual([[...lost], [...cancelled]].map((runs) => runs.map(({ taskKey }) => taskKey)), [[`${task}:lost`], [`${task}:cancelled`]])
    const { readRun } = await import('../../src/store/read-run.ts')
    const { heartbeatAt, startedAt } = (await readRun(bench.store, `${task}:kept`))!
    assert.ok(heartbeatAt!.getTime() >= startedAt!.getTime(), 'it was renewed')
  })

  it('given back, a run is first in line again with its attempt not counted and a greater fence', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [{ label: 'a' }, { label: 'b' }])
    const [first] = await take(bench.store, task, 1)

    await releaseMany(bench.store, [first!])

    const [again] = await take(bench.store, task, 1)
    assert.deepEqual([labels([again!]), again!.attempt], [['a'], 1])
    assert.ok(again!.fence > first!.fence)
    assert.deepEqual(await bench.outcomes(first!.taskKey), ['released'])
  })

  it('case 69: a fence beyond 2^53 comes through whole, and a bump is above it', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [{ label: 'a' }])
    await bench.store.statement((db) => db.updateTable('task_runs').set({ fence: 9007199254740993n }).where('task_key', '=', `${task}:a`).execute())
    const [taken] = await take(bench.store, task)
    assert.equal(taken!.fence, 9007199254740994n)
    assert.deepEqual([...(await completeMany(bench.store, [{ ...taken!, result: null }]))], [])

    await bumpFences(bench.store, 1000n)
    await enqueue(bench.store, task, [{ label: 'b' }])
    assert.ok((await take(bench.store, task))[0]!.fence > 1000n)
  })

  it('an earlier attempt of the same process completes nothing: attempt and fence are asked for, not the instance alone', async () => {
    const task = bench.task()
    const us = instance()
    await enqueue(bench.store, task, [{ label: 'again' }, { label: 'other', concurrencyKey: `${task}-k` }])
    const first = await take(bench.store, task, 100, us)
    await bench.age(`${task}:again`)
    await reap(bench.store)
    const [second] = await take(bench.store, task, 100, us)
    assert.deepEqual([labels([second!]), second!.attempt], [['again'], 2])

    const stale = first.find(({ taskKey }) => taskKey === second!.taskKey)!
    assert.deepEqual([...(await completeMany(bench.store, [{ ...stale, result: null }]))].map(({ taskKey }) => taskKey), [stale.taskKey])
    assert.deepEqual([...(await completeMany(bench.store, [{ ...stale, result: null }, { ...first.find((run) => run !== stale)!, fence: 99n, result: null }]))].length, 2)
    assert.deepEqual([...(await heartbeatMany(bench.store, [stale])).lost], [stale])
    assert.deepEqual([...(await heartbeatMany(bench.store, [stale, second!])).lost], [stale], 'two attempts of one run in one beat')
    assert.equal((await bench.row(stale.taskKey))['status'], 'processing')
  })

  for (const key of [null, 'shared']) {
    it(`of two attempts of one process at one run that are recorded together, the later one completes it (concurrency key: ${key})`, async () => {
      const [task, process] = [bench.task(), instance()]
      await enqueue(bench.store, task, ['a', 'b'].map((label) => ({ label, concurrencyKey: key && `${task}-${label}` })))
      const first = await take(bench.store, task, 100, process)
      for (const { taskKey } of first) await bench.age(taskKey)
      await reap(bench.store)
      const second = await take(bench.store, task, 100, process)
      const done = [...first.map((run) => ({ ...run, result: '"first"' })), ...second.map((run) => ({ ...run, result: '"second"' }))]

      const lost = await completeMany(bench.store, done)

      assert.deepEqual([...lost].map(({ attempt }) => attempt), [1, 1])
      for (const { taskKey } of second) {
        const { status, attempt, result } = await bench.row(taskKey)
        assert.deepEqual([status, attempt, result], ['completed', 2, '"second"'])
      }
    })
  }

  it('a key that was pruned and is enqueued again goes on above its old fence', async () => {
    const task = bench.task()
    await enqueue(bench.store, task, [{ label: 'a' }])
    await bench.store.statement((db) => db.updateTable('task_runs').set({ fence: 5000n }).where('task_key', '=', `${task}:a`).execute())
    const [before] = await take(bench.store, task)
    await completeMany(bench.store, [{ ...before!, result: null }])
    const pruned = await takeRuns(bench.store, { task, status: 'completed', keys: [`${task}:a`], before: new Date(Date.now() + 3_600_000) })
    assert.equal(pruned.runs, 1)

    await enqueue(bench.store, task, [{ label: 'a' }])

    assert.ok((await take(bench.store, task))[0]!.fence > before!.fence)
  })
})

/** The runs in a worker's hands: kept while it lives, given back when it stops, told to stop when they are lost. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WorkRun } from '../../../src/index.ts'
import { freeKeys } from '../../../src/store/complete-batch.ts'
import { reap } from '../../../src/store/reap.ts'
import { cutConnection, interrupted } from '../../support/failing-store.ts'
import { startFixture } from '../../support/fixture-process.ts'
import { eachLedger } from '../../support/ledgers.ts'
import { take } from '../../support/queue.ts'
import { startWorker } from '../../support/workers.ts'

const LEASE_MS = 1_200

/** Until its signal aborts. */
function untilStopped(run: WorkRun): Promise<never> {
  return new Promise((_resolve, reject) => run.signal.addEventListener('abort', () => reject(run.signal.reason as Error)))
}

eachLedger('leases of workers', (bench) => {
  it('case 77: a run that takes four leases is done once, by the one of two workers that has it', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    let executions = 0
    const handlers = { [task]: async () => {
      executions++
      await sleep(4 * LEASE_MS)
    } }
    const one = await startWorker(t, ledger, { queues: [task], lease: LEASE_MS, handlers })
    const two = await startWorker(t, ledger, { queues: [task], lease: LEASE_MS, handlers })
    await ledger.enqueue(task, { key: 'long', queue: task })

    await Promise.race([one.ended('completed'), two.ended('completed')])

    assert.deepEqual([executions, (await bench.row(`${task}:long`))['attempt'], await bench.outcomes(`${task}:long`)], [1, 1, []])
  })

  it('case 76: a handler that blocks the event loop for three leases keeps its run, and one that blocks it beyond the limit loses it', async (t) => {
    const leaseMs = 2_000 // The thread of a process that was just started may be late.
    const blocks = async (hungAfter: string) => {
      const task = bench.task()
      const process = startFixture(t, 'runtime/worker/fixture-blocked.ts', [bench.url, task, String(leaseMs), hungAfter])
      await process.says('ready')
      await (await bench.open()).enqueue(task, { key: 'blocks', queue: task, payload: 'block', maxAttempts: 1 })
      await process.says('ended')
      return `${task}:blocks`
    }
    const reaped: string[] = []
    let done = false
    const kept = Promise.all([blocks('10m'), blocks(`${leaseMs / 2}ms`)]).finally(() => (done = true))
    for (; !done; await sleep(50)) reaped.push(...(await reap(bench.store)).map(({ run }) => run.taskKey))
    const [patient, hung] = await kept

    assert.deepEqual([(await bench.row(patient))['status'], (await bench.row(hung))['status'], reaped], ['completed', 'failed', [hung]])
  })

  it('a worker that is told to stop lets handlers end, gives the rest back with no attempt counted, and claims no more', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    const started: string[] = []
    await ledger.enqueueMany(task, ['quick', 'slow', 'next'].map((key) => ({ key, queue: task, payload: key })))
    const { worker, until, ended } = await startWorker(t, ledger, { queues: [task], concurrency: 2, stopTimeout: '300ms', handlers: { [task]: async (key: string, run: WorkRun) => {
      started.push(key)
      if (key === 'quick') await sleep(100)
      else await untilStopped(run)
    } } })
    await until(() => started.length === 2)

    await worker.stop()

    await ended('completed')
    assert.equal(worker.status().state, 'stopped')
    const rows = await Promise.all(['quick', 'slow', 'next'].map((key) => bench.row(`${task}:${key}`)))
    assert.deepEqual(rows.map((row) => [row['status'], row['attempt']]), [['completed', 1], ['pending', 0], ['pending', 0]])
    assert.deepEqual(await bench.outcomes(`${task}:slow`), ['released'])
    assert.equal((await take(bench.store, task)).length, 2, 'both may be taken at once')
  })

  it('after a claim whose answer was lost, a run that it began and lost meanwhile is not given back: that attempt counts', async (t) => {
    const task = bench.task()
    let [isMute, answersToLose] = [false, 0]
    const wasTaken = async () => (await bench.store.db.selectFrom('task_runs').select('status').where('task_key', '=', `${task}:unseen`).executeTakeFirst())?.status === 'processing'
    const beats = interrupted(bench.store, () => {
      if (isMute) throw cutConnection()
    })
    const ledger = bench.ledgerOn(interrupted(bench.store, async (moment) => {
      if (moment.startsWith('after') && answersToLose > 0 && (await wasTaken()) && answersToLose-- > 0) throw cutConnection()
    }), { beats })
    const { until, ended } = await startWorker(t, ledger, { queues: [task], lease: LEASE_MS, handlers: { [task]: (key: string, run: WorkRun) => (key === 'begun' ? untilStopped(run) : undefined) } })
    await bench.ledgerOn(bench.store).enqueue(task, { key: 'begun', queue: task, payload: 'begun' })
    await until(({ event }) => event === 'started')
    isMute = true // No heartbeat gets through.
    await ended('lost')
    isMute = false
    answersToLose = 1
    await bench.ledgerOn(bench.store).enqueue(task, { key: 'unseen', queue: task, payload: 'unseen' })
    await ended('completed')

    assert.deepEqual(await bench.outcomes(`${task}:unseen`), ['released'])
    assert.ok(!(await bench.outcomes(`${task}:begun`)).includes('released'))
  })

  it('a second request to stop hurries', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.enqueue(task, { key: 'a', queue: task })
    const { worker, until } = await startWorker(t, ledger, { queues: [task], stopTimeout: '1h', handlers: { [task]: (_: unknown, run: WorkRun) => untilStopped(run) } })
    await until(({ event }) => event === 'started')

    const stopped = worker.stop()
    await Promise.all([worker.stop(), stopped])

    assert.deepEqual([(await bench.row(`${task}:a`))['status'], (await bench.row(`${task}:a`))['attempt']], ['pending', 0])
  })

  it('runs that wait behind slow ones are given back for others to do', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.enqueueMany(task, Array.from({ length: 60 }, (_, nth) => ({ key: String(nth), queue: task, payload: nth })))
    const { ended, until } = await startWorker(t, ledger, { queues: [task], concurrency: 1, handlers: { [task]: (nth: number, run: WorkRun) => (nth < 20 ? undefined : untilStopped(run)) } })
    await ended('completed', 20)
    await until(({ event }) => event === 'released', 'one given back')

    const waiting = (await bench.recorded(task)).runs.filter((run) => run['status'] === 'processing')
    assert.ok(waiting.length <= 2, `${waiting.length} are held`)
  })

  it('case 85: a run that was lost is told so, and its late result changes nothing of its successor', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.enqueue(task, { key: 'a', queue: task })
    const { promise: go, resolve } = Promise.withResolvers<void>()
    const first = await startWorker(t, ledger, { queues: [task], lease: LEASE_MS, handlers: { [task]: () => go } })
    await first.until(({ event }) => event === 'started')
    first.worker.stop().catch(() => {}) // Claims no more; its handler goes on.
    await bench.age(`${task}:a`)
    await reap(bench.store)
    const [theirs] = await take(bench.store, task)
    resolve()

    await first.until(({ event }) => event === 'lost')

    const row = await bench.row(`${task}:a`)
    assert.deepEqual([row['status'], row['attempt'], row['instance_id']], ['processing', 2, theirs!.instanceId])
  })

  it('case 58: the last attempt of a key dies with its worker; when its lease is over the next run of the key begins', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.enqueueMany(task, ['dies', 'next'].map((key) => ({ key, queue: task, maxAttempts: 1, concurrencyKey: `${task}-k` })))
    assert.equal((await take(bench.store, task)).length, 1, 'by a worker that is then killed')
    await bench.age(`${task}:dies`)

    const { ended } = await startWorker(t, ledger, { queues: [task], handlers: { [task]: () => {} } })
    await ended('completed')

    const [dies, next] = [await bench.row(`${task}:dies`), await bench.row(`${task}:next`)]
    assert.deepEqual([dies['status'], dies['failure_reason'], next['status']], ['failed', 'lost', 'completed'])
    await freeKeys(bench.store, [`${task}-k`])
  })

  it('a launch of exec and a worker share the pending runs of a task, and never do one twice', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    const held = await ledger.claim({ task, key: 'one' })
    const queued = await ledger.claim({ task, key: 'two', overlap: 'queue' })
    assert.deepEqual([held.status, queued.status], ['claimed', 'queued'])
    const { ended } = await startWorker(t, ledger, { handlers: { [task]: () => {} } })
    await sleep(300)
    assert.equal((await bench.row(`${task}:two`))['status'], 'pending', 'the launch has the key')

    if (held.status === 'claimed') await held.complete()
    await ended('completed')

    assert.equal((await bench.row(`${task}:two`))['status'], 'completed')
  })

  it('an enqueued run may be taken up by a launch of its task, under its own concurrency key and with a greater fence', async () => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.enqueue(task, { key: 'a', queue: task, concurrencyKey: `${task}-own` })
    const [taken] = await take(bench.store, task)
    await bench.age(taken!.taskKey)
    const [due] = await ledger.due(task)

    const claim = await ledger.takeUp(due!, { task })

    assert.equal(claim.status, 'claimed')
    assert.ok(claim.status === 'claimed' && claim.fence > taken!.fence)
    assert.equal((await bench.row(`${task}:a`))['active_key'], `${task}-own`)
    if (claim.status === 'claimed') await claim.complete()
  })
}, { atOnce: true })

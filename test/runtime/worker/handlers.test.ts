/** What a handler gets, and what becomes of a run by what it does: completed, tried again, failed for good, given back. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { StandardSchema, WorkRun } from '../../../src/index.ts'
import { isLedgerError } from '../../../src/model/errors.ts'
import { eachLedger } from '../../support/ledgers.ts'
import { startWorker } from '../../support/workers.ts'

eachLedger('handlers', (bench) => {
  it('case 70: payloads and results come back as they went in, and only no payload at all is SQL NULL', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    const payloads = [null, undefined, [], [1, 2], 'text', 0, false, { nested: { ü: '💥' } }]
    const got = new Map<string, unknown>()
    await ledger.enqueueMany(task, payloads.map((payload, nth) => ({ key: String(nth), payload, queue: task })))

    const { ended } = await startWorker(t, ledger, { queues: [task], handlers: { [task]: (payload: unknown, run: WorkRun) => {
      got.set(run.taskKey, payload)
      return payload
    } } })
    await ended('completed', payloads.length)

    assert.deepEqual(payloads.map((_, nth) => got.get(`${task}:${nth}`)), payloads)
    for (const [nth, payload] of payloads.entries()) {
      const row = await bench.row(`${task}:${nth}`)
      assert.deepEqual([row['payload'] === null, row['result'] === null], [payload === undefined, payload === undefined], `payload ${nth}`)
      if (payload !== undefined) assert.deepEqual(JSON.parse(String(row['result'])), payload)
    }
  })

  it('case 69: what JSON cannot say, or one database would refuse, is refused before anything is written', async () => {
    const [ledger, task] = [await bench.open(), bench.task()]
    for (const payload of [{ n: 1n }, { at: NaN }, 'a\0b', { half: '\ud800' }, { ['k\0']: 1 }, new Map(), 'x'.repeat(1024 * 1024)]) {
      await assert.rejects(ledger.enqueueMany(task, [{ payload: 'good' }, { payload }]), { code: 'INVALID_OPTION' })
    }
    assert.deepEqual((await bench.recorded(task)).runs, [])
  })

  it('what is enqueued in its own process a worker begins at once, however seldom it polls: single runs, one with a concurrency key, and many', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    const { ended, until } = await startWorker(t, ledger, { queues: [task], poll: '1h', handlers: { [task]: () => {} } })
    await until(({ event }) => event === 'connected')

    for (const [nth, concurrencyKey] of [undefined, undefined, `${task}-k`, undefined].entries()) {
      await ledger.enqueue(task, { queue: task, concurrencyKey })
      await ended('completed', nth + 1)
    }
    await ledger.enqueueMany(task, Array.from({ length: 40 }, () => ({ queue: task })))
    await ended('completed', 44)
  })

  it('of a long line, a run of better priority that comes late is begun within an interval, not at the end', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.enqueueMany(task, Array.from({ length: 300 }, (_, nth) => ({ key: String(nth), queue: task, priority: 5 })))
    const begun: string[] = []
    const { promise: urgentBegun, resolve } = Promise.withResolvers<void>()

    await startWorker(t, ledger, { queues: [task], concurrency: 1, handlers: { [task]: async (_payload: unknown, run: WorkRun) => {
      if (begun.push(run.taskKey) === 1) await ledger.enqueue(task, { key: 'urgent', queue: task })
      if (run.taskKey === `${task}:urgent`) resolve()
      await sleep(10)
    } } })
    await urgentBegun

    assert.ok(begun.length < 290, `it was the ${begun.length}th`)
  })

  it('a handler that throws is tried again after the backoff, and after its last attempt the run has failed', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.enqueue(task, { key: 'bad', queue: task, maxAttempts: 2, backoff: '10ms' })

    const { ended, events } = await startWorker(t, ledger, { queues: [task], handlers: { [task]: () => { throw new Error('bad luck') } } })
    await ended('failed', 2)

    const row = await bench.row(`${task}:bad`)
    assert.deepEqual([row['status'], row['attempt'], row['failure_reason']], ['failed', 2, 'error'])
    assert.match(String(row['error']), /bad luck/)
    assert.deepEqual(await bench.outcomes(`${task}:bad`), ['failed', 'failed'])
    assert.ok(events.some((event) => event.event === 'failed' && event.retryInMs !== null))
  })

  it('cases 48 and 49: broken text and an error of 20 MB are recorded, bounded, and the worker lives on', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.enqueueMany(task, [{ key: 'broken', queue: task, payload: '💥 café \udcff\u0000'.toWellFormed().replace('\0', '') }, { key: 'huge', queue: task, payload: 'huge' }, { key: 'good', queue: task, payload: 'good' }].map((run) => ({ ...run, maxAttempts: 1 })))

    const { ended } = await startWorker(t, ledger, { queues: [task], handlers: { [task]: (payload: string) => {
      if (payload === 'huge') throw new Error('x'.repeat(20 * 1024 * 1024))
      if (payload !== 'good') throw new Error('💥 café \udcff\0')
    } } })
    await ended('failed', 2)
    await ended('completed')

    const [broken, huge] = [await bench.row(`${task}:broken`), await bench.row(`${task}:huge`)]
    assert.deepEqual([broken['status'], broken['attempt'], huge['status'], huge['attempt']], ['failed', 1, 'failed', 1])
    assert.ok(Buffer.byteLength(String(huge['error'])) <= 16 * 1024)
    assert.match(String(huge['error']), /bytes cut/)
  })

  it('a payload that its schema refuses is refused at the door, and failed without another try by a worker', async (t) => {
    const task = bench.task()
    const schema: StandardSchema<{ n: number }> = { '~standard': { version: 1, vendor: 'test', validate: (value) => (typeof (value as { n?: unknown })?.n === 'number' ? { value: { n: (value as { n: number }).n * 2 } } : { issues: [{ message: 'must be a number', path: ['n'] }] }) } }
    const [strict, lax] = [await bench.open<Record<string, { payload: { n: number } }>>({ schemas: { [task]: schema } }), await bench.open()]
    await assert.rejects(strict.enqueue(task, { payload: { n: 'one' } as never }), (error) => isLedgerError(error) && error.code === 'INVALID_OPTION' && /n: must be a number/.test(error.message))
    await lax.enqueue(task, { key: 'bad', queue: task, payload: { n: 'one' } })
    await strict.enqueue(task, { key: 'good', queue: task, payload: { n: 21 } })
    const seen: unknown[] = []

    const { ended } = await startWorker(t, strict, { queues: [task], handlers: { [task]: (payload: unknown) => void seen.push(payload) } })
    await ended('failed')
    await ended('completed')

    const row = await bench.row(`${task}:bad`)
    assert.deepEqual([row['status'], row['attempt'], seen], ['failed', 1, [{ n: 42 }]])
    assert.match(String(row['error']), /n: must be a number/)
  })

  it('a run that takes longer than its timeout is told to stop and recorded so', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.enqueueMany(task, [{ key: 'heeds', queue: task, timeout: '50ms', maxAttempts: 1 }, { key: 'deaf', queue: task, timeout: '50ms', maxAttempts: 1 }])

    const { ended, worker } = await startWorker(t, ledger, { queues: [task], handlers: { [task]: (_: unknown, run: WorkRun) => new Promise<void>((_resolve, reject) => {
      if (run.taskKey.endsWith('heeds')) run.signal.addEventListener('abort', () => reject(new Error('stopped')))
    }) } })
    await ended('failed', 2)

    for (const key of ['heeds', 'deaf']) assert.deepEqual([(await bench.row(`${task}:${key}`))['status'], (await bench.row(`${task}:${key}`))['failure_reason']], ['failed', 'timeout'])
    assert.deepEqual([worker.status().active, worker.status().abandoned], [0, 1], 'its slot is free again, and it is said that it goes on')
  })

  it('a run is completed together with its data, or not at all', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.enqueueMany(task, [{ key: 'good', queue: task, payload: true }, { key: 'bad', queue: task, payload: false, maxAttempts: 1 }])

    const { ended } = await startWorker(t, ledger, { queues: [task], handlers: { [task]: (good: boolean, run: WorkRun) => run.transaction(async (tx) => {
      await tx.insertInto('tasks').values({ task_name: run.taskKey.replace(':', '/') }).execute()
      if (!good) throw new Error('no')
    }) } })
    await ended('completed')
    await ended('failed')

    const names = (await bench.store.db.selectFrom('tasks').select('task_name').where('task_name', 'like', `${task}/%`).execute()).map((row) => row.task_name)
    assert.deepEqual(names, [`${task}/good`])
  })

  it('an effect of a handler is done once, however often the run is tried', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    let performed = 0
    await ledger.enqueue(task, { key: 'a', queue: task, backoff: '1ms' })

    const { ended } = await startWorker(t, ledger, { queues: [task], handlers: { [task]: async (_: unknown, run: WorkRun) => {
      await run.effect('mail', async () => ++performed)
      if (run.attempt < 3) throw new Error('later')
    } } })
    await ended('completed')

    assert.deepEqual([performed, (await bench.row(`${task}:a`))['attempt']], [1, 3])
  })

  it('an operator who cancels a run has its handler stopped, and the run ends as cancelled', async (t) => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.enqueue(task, { key: 'a', queue: task })
    const { until, ended } = await startWorker(t, ledger, { queues: [task], lease: '900ms', handlers: { [task]: (_: unknown, run: WorkRun) => new Promise<void>((_resolve, reject) => run.signal.addEventListener('abort', () => reject(run.signal.reason as Error))) } })
    await until(({ event }) => event === 'started')

    await ledger.operator.cancel(`${task}:a`)
    await ended('failed')

    const row = await bench.row(`${task}:a`)
    assert.deepEqual([row['status'], row['failure_reason']], ['failed', 'cancelled'])
  })
})

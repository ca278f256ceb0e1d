/** Workers whose database goes away, lies, or loses an answer: they go on by themselves, and no run is lost or done twice. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger, type Ledger, type WorkRun } from '../../src/index.ts'
import { eachServerLedger, killSessions } from '../support/each-server.ts'
import { faultProxy, REPLY_LOST, type FaultProxy } from '../support/fault-proxy.ts'
import { startWorker } from '../support/workers.ts'
import { violations } from './violations.ts'

const RUNS = 60

eachServerLedger('workers in trouble', (bench, db) => {
  let proxy: FaultProxy
  before(async () => {
    proxy = await faultProxy(bench.url)
  })
  after(() => proxy.close())

  async function behindProxy(t: { after(hook: () => Promise<void>): void }): Promise<Ledger> {
    const ledger = await openLedger(proxy.url, { connectTimeout: '2s' })
    t.after(() => ledger.close())
    return ledger
  }

  async function allDoneOnce(task: string, runs: number): Promise<void> {
    const { runs: rows } = await bench.recorded(task)
    assert.deepEqual([rows.length, rows.filter((run) => run['status'] === 'completed').length], [runs, runs])
    assert.deepEqual(await violations(db, bench.url), [])
  }

  it('case 57: a database that cannot be reached for a while degrades a worker of eight, which then goes on by itself', async (t) => {
    const [ledger, direct, task] = [await behindProxy(t), await bench.open(), bench.task()]
    await direct.enqueueMany(task, Array.from({ length: RUNS }, (_, nth) => ({ key: String(nth), queue: task, maxAttempts: 10 })))
    const { worker, until, ended } = await startWorker(t, ledger, { queues: [task], concurrency: 8, lease: '30s', handlers: { [task]: () => sleep(20) } })
    await ended('completed', 5)

    proxy.mode = 'refuse'
    proxy.reset()
    await until(({ event }) => event === 'degraded')
    await sleep(1_000)
    assert.equal(worker.status().state, 'degraded')
    assert.ok(worker.status().problem !== null)
    proxy.mode = 'up'

    await ended('completed', RUNS)
    assert.equal(worker.status().state, 'connected')
    await allDoneOnce(task, RUNS)
  })

  it('a worker that is started while the database cannot be reached begins when it can', async (t) => {
    const [ledger, direct, task] = [await behindProxy(t), await bench.open(), bench.task()]
    await direct.enqueue(task, { queue: task })
    proxy.mode = 'refuse'
    proxy.reset()
    const starting = startWorker(t, ledger, { queues: [task], handlers: { [task]: () => {} } })
    await sleep(300)
    proxy.mode = 'up'
    await (await starting).ended('completed')
  })

  it('case 56: sessions that are ended five times during a run cost it neither its lease nor its fence', async (t) => {
    const [ledger, direct, task] = [await behindProxy(t), await bench.open(), bench.task()]
    await direct.enqueue(task, { key: 'a', queue: task })
    const fences: bigint[] = []
    const { ended, until } = await startWorker(t, ledger, { queues: [task], lease: '3s', handlers: { [task]: async (_: unknown, run: WorkRun) => {
      fences.push(run.fence)
      await sleep(2_500)
    } } })
    await until(({ event }) => event === 'started')

    for (let times = 0; times < 5; times++) {
      await killSessions(db, bench.url)
      await sleep(300)
    }
    await ended('completed')

    const row = await bench.row(`${task}:a`)
    assert.deepEqual([row['status'], row['attempt'], BigInt(row['fence'] as bigint), fences.length], ['completed', 1, fences[0], 1])
  })

  for (const what of ['claim', 'completion'] as const) {
    it(`case 91: the answer to a ${what} that is lost loses no run and does none twice`, async (t) => {
      const [ledger, direct, task] = [await behindProxy(t), await bench.open(), bench.task()]
      await direct.enqueueMany(task, Array.from({ length: RUNS }, (_, nth) => ({ key: String(nth), queue: task, ...(what === 'claim' && nth % 3 === 0 && { concurrencyKey: `${task}-${nth % 2}` }) })))
      const executions = new Map<string, number>()
      let lost = 0
      let isClaiming = false
      proxy.onStatement = (text) => {
        const takes = /^\s*(\/\* often \*\/)?\s*(with selected|update)\b/i.test(text) && /lease_seconds/.test(text)
        const completes = /^\s*(\/\* often \*\/)?\s*update\b/i.test(text) && /finished_at/.test(text) && !/lease_seconds/.test(text)
        if (takes) isClaiming = true
        const isIt = what === 'claim' ? isClaiming && /^commit/i.test(text) : completes
        if (!isIt || lost === 2) return undefined
        lost++
        isClaiming = false
        return REPLY_LOST
      }
      const { ended } = await startWorker(t, ledger, { queues: [task], lease: '10m', handlers: { [task]: (_: unknown, run: WorkRun) => void executions.set(run.taskKey, (executions.get(run.taskKey) ?? 0) + 1) } })

      await ended('completed', RUNS)
      proxy.onStatement = () => undefined

      assert.equal(lost, 2)
      assert.deepEqual([executions.size, [...executions.values()].filter((times) => times > 1)], [RUNS, []])
      await allDoneOnce(task, RUNS)
    })
  }

  it('cases 35 and 71: deadlocks and serialization failures in heartbeats and completions are tried again', async (t) => {
    const [ledger, direct, task] = [await behindProxy(t), await bench.open(), bench.task()]
    await direct.enqueueMany(task, Array.from({ length: 5 }, (_, nth) => ({ key: String(nth), queue: task })))
    let failed = 0
    const codes = db.name === 'postgres' ? ['40P01', '40001'] : ['1213', '1205']
    proxy.onStatement = (text) => (failed < 6 && /^(\/\* often \*\/)?\s*update/i.test(text) && (/heartbeat_at/.test(text) || /completed/.test(text)) ? { execute: null, error: codes[failed++ % 2]! } : undefined)
    const { ended, events } = await startWorker(t, ledger, { queues: [task], lease: '4s', handlers: { [task]: () => sleep(2_500) } })

    await ended('completed', 5)
    proxy.onStatement = () => undefined

    assert.ok(failed > 0)
    assert.deepEqual(events.filter(({ event }) => event === 'lost'), [])
    await allDoneOnce(task, 5)
  })

  it('case 65: a worker whose listener is cut again and again still begins a run within its poll interval', async (t) => {
    const [ledger, direct, task] = [await behindProxy(t), await bench.open(), bench.task()]
    proxy.harm(/^listen /, { execute: null }, Infinity)
    const { worker, until, ended, events } = await startWorker(t, ledger, { queues: [task], poll: '400ms', handlers: { [task]: () => {} } })
    await until(({ event }) => event === 'connected')
    const waits: number[] = []
    for (let nth = 1; nth <= 5; nth++) {
      const sentAt = performance.now()
      await direct.enqueue(task, { queue: task })
      await ended('completed', nth)
      waits.push(performance.now() - sentAt)
    }
    proxy.onStatement = () => undefined

    assert.ok(Math.max(...waits) < 3_000, waits.join(' '))
    assert.equal(worker.status().state, 'connected', JSON.stringify(events.filter(({ event }) => event === 'degraded')))
  })

  it('cases 75 and 108: handlers that hold every connection of the ledger for longer than a lease cost no lease, and the worker says that it is well', async (t) => {
    const [ledger, task] = [await openLedger(bench.url), bench.task()]
    t.after(() => ledger.close())
    await ledger.enqueueMany(task, Array.from({ length: 8 }, (_, nth) => ({ key: String(nth), queue: task })))
    const { worker, ended, events } = await startWorker(t, ledger, { queues: [task], concurrency: 8, lease: '4s', handlers: { [task]: (_: unknown, run: WorkRun) => run.transaction(() => sleep(3_000)) } })
    await sleep(2_500)
    assert.equal(worker.status().state, 'connected')

    await ended('completed', 8)

    assert.deepEqual(events.filter(({ event }) => event === 'lost' || event === 'degraded'), [])
    await allDoneOnce(task, 8)
  })

  it('case 51: a row that somebody has locked holds up nobody but itself', async (t) => {
    const [direct, task] = [await bench.open(), bench.task()]
    await direct.enqueueMany(task, ['locked', 'a', 'b'].map((key) => ({ key, queue: task })))
    const { session } = await import('../support/each-server.ts')
    const somebody = await session(bench.url)
    t.after(() => somebody.end())
    await somebody.query('begin')
    await somebody.query(`select task_key from task_runs where task_key = '${task}:locked' for update`)

    const { ended } = await startWorker(t, direct, { queues: [task], handlers: { [task]: () => {} } })
    await ended('completed', 2)
    assert.equal((await bench.row(`${task}:locked`))['status'], 'pending')
    await somebody.query('rollback')

    await ended('completed', 3)
  })

  it('case 28: eight that enqueue and four that claim at the same time see no deadlock, and lose and double nothing', async (t) => {
    const [direct, task] = [await bench.open(), bench.task()]
    const seen: string[] = []
    const workers = []
    for (let nth = 0; nth < 4; nth++) workers.push(await startWorker(t, direct, { queues: [task], handlers: { [task]: (_: unknown, run: WorkRun) => void seen.push(run.taskKey) } }))

    await Promise.all(Array.from({ length: 8 }, async (_, producer) => {
      for (let part = 0; part < 10; part++) await direct.enqueueMany(task, Array.from({ length: 20 }, (_, nth) => ({ key: `${producer}-${part}-${nth}`, queue: task })))
    }))
    while (workers.reduce((sum, { worker }) => sum + worker.status().completed, 0) < 1600) await sleep(50)

    assert.deepEqual([seen.length, new Set(seen).size], [1600, 1600])
    assert.deepEqual(workers.flatMap(({ events }) => events.filter(({ event }) => event === 'degraded' || event === 'lost')), [])
  })
}, { atOnce: true })

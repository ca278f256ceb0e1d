/** Workers that lose sight of their database for longer than a lease: they let go in time, and come back by themselves. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger, type WorkRun } from '../../src/index.ts'
import { monotonicMs } from '../../src/runtime/heart.ts'
import { eachServerLedger, type TestServer } from '../support/each-server.ts'
import { faultProxy, type FaultProxy } from '../support/fault-proxy.ts'
import type { Bench } from '../support/ledgers.ts'
import { startWorker } from '../support/workers.ts'
import { violations } from './violations.ts'

const LEASE_MS = 2_400

describe('workers cut off', { concurrency: true }, () => {
  for (const mode of ['refuse', 'blackhole'] as const) eachServerLedger(`workers cut off (${mode})`, (bench, db) => cutOff(mode, bench, db), { atOnce: true })
})

function cutOff(mode: 'refuse' | 'blackhole', bench: Bench, db: TestServer): void {
  let proxy: FaultProxy
  before(async () => {
    proxy = await faultProxy(bench.url)
  })
  after(() => proxy.close())

  it(`cases 80 and 89: two workers without a database for three leases (${mode}): the handler stops before its lease ends, and the run is done again by one of them`, async (t) => {
    const task = bench.task()
    const spans: { from: number; to: number }[] = []
    const work = async (_: unknown, run: WorkRun) => {
      const span = { from: monotonicMs(), to: Infinity }
      const isFirst = spans.push(span) === 1
      if (isFirst) await new Promise((resolve) => run.signal.addEventListener('abort', resolve))
      span.to = monotonicMs()
    }
    const start = async () => {
      const ledger = await openLedger(proxy.url, { connectTimeout: '1s' })
      t.after(() => ledger.close())
      return startWorker(t, ledger, { queues: [task], lease: LEASE_MS, handlers: { [task]: work } })
    }
    const workers = [await start(), await start()]
    await (await bench.open()).enqueue(task, { key: 'a', queue: task })
    await Promise.race(workers.map(({ until }) => until(({ event }) => event === 'started')))
    await sleep(LEASE_MS / 2) // So that the lease is one that was renewed.

    const cutAt = monotonicMs()
    proxy.mode = mode
    if (mode === 'refuse') proxy.reset()
    await Promise.all(workers.map(({ until }) => until(({ event }) => event === 'degraded')))
    await sleep(Math.max(0, cutAt + 3 * LEASE_MS - monotonicMs()))
    assert.deepEqual(workers.map(({ worker }) => worker.status().state), ['degraded', 'degraded'])
    proxy.mode = 'up'
    proxy.reset()
    await Promise.race(workers.map(({ ended }) => ended('completed')))

    const [first, second, ...others] = spans
    assert.ok(first!.to - cutAt < LEASE_MS, `the handler went on for ${first!.to - cutAt} ms of a lease of ${LEASE_MS} ms that nobody could renew`)
    assert.ok(second!.from > first!.to, 'and only then came the next')
    assert.deepEqual([others, (await bench.row(`${task}:a`))['status'], await bench.outcomes(`${task}:a`)], [[], 'completed', ['lost']])
    for (const { worker, until } of workers) if (worker.status().state !== 'connected') await until(() => worker.status().state === 'connected')
    assert.deepEqual(await violations(db, bench.url), [])
  })
}

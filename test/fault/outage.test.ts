/** The database goes away while runs are processing: owners stop in time, nobody is reaped for an outage that everybody had. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Claim } from '../../src/runtime/claim.ts'
import { monotonicMs } from '../../src/runtime/heart.ts'
import { openLedger, type Ledger } from '../../src/runtime/ledger.ts'
import type { LedgerOptions } from '../../src/runtime/ledger-options.ts'
import { eachServerLedger } from '../support/each-server.ts'
import { faultProxy, REPLY_LOST, type FaultProxy } from '../support/fault-proxy.ts'

const LEASE_MS = 1_200

eachServerLedger('outage', (bench) => {
  let proxy: FaultProxy
  before(async () => {
    proxy = await faultProxy(bench.url)
  })
  after(() => proxy.close())

  /** A ledger that reaches the database through the proxy only. */
  async function behindProxy(t: { after(hook: () => Promise<void>): void }, options: LedgerOptions = {}): Promise<Ledger> {
    const ledger = await openLedger(proxy.url, { connectTimeout: '5s', ...options })
    t.after(() => ledger.close())
    return ledger
  }

  for (const [mode, heartbeats, leaseMs] of [['blackhole', 'thread', 2 * LEASE_MS], ['refuse', 'loop', LEASE_MS]] as const) {
    it(`case 80: an owner cut off from the database (${mode}) stops before anybody else may claim its run`, async (t) => {
      const [a, b] = [await behindProxy(t, { heartbeats }), await bench.open()]
      const launch = { task: bench.task(), key: 'a', lease: leaseMs }
      const sentAt = monotonicMs()
      const claim = await claimed(a, launch)
      proxy.mode = mode
      if (mode === 'refuse') proxy.reset()

      await once(claim.signal, 'abort')
      const heldFor = monotonicMs() - sentAt
      const early = await b.claim(launch)
      const askedWithin = monotonicMs() - sentAt
      const waited = early.status === 'claimed' ? early : await b.claim({ ...launch, overlap: 'wait', waitTimeout: '5s' })
      proxy.mode = 'up'
      proxy.reset()

      assert.ok(heldFor < leaseMs, `it stopped after ${heldFor} ms of a lease of ${leaseMs} ms`)
      if (askedWithin < leaseMs) assert.deepEqual([early.status, 'reason' in early && early.reason], ['conflict', 'held'])
      assert.ok(waited.status === 'claimed' && waited.fence > claim.fence, waited.status)
      assert.equal((claim.signal.reason as { code?: string }).code, 'LEASE_LOST')
      await assert.rejects(claim.complete(), { code: 'LEASE_LOST' })
      await waited.complete()
    })
  }

  it('case 89: after an outage that both had, the reaper gives the owner one whole lease to come back', async (t) => {
    const [a, b] = [await behindProxy(t), await behindProxy(t, { connectTimeout: 0 })]
    const claim = await claimed(a, { task: bench.task(), key: 'a', lease: LEASE_MS })
    proxy.mode = 'refuse'
    proxy.reset()
    await assert.rejects(b.reap(), { code: 'DATABASE_UNAVAILABLE' })
    await bench.age(claim.taskKey, 3 * LEASE_MS / 1000)
    proxy.mode = 'up'

    assert.deepEqual(await b.reap(), [])
    await claim.complete()
    assert.deepEqual((await bench.row(claim.taskKey))['status'], 'completed')
    assert.deepEqual(await bench.outcomes(claim.taskKey), [])
  })

  it('case 89: an owner that does not come back is reaped when that lease is over', async (t) => {
    const b = await behindProxy(t, { connectTimeout: 0 })
    const owner = await openLedger(bench.url)
    const { taskKey } = await claimed(owner, { task: bench.task(), key: 'a', lease: LEASE_MS })
    await owner.close()
    proxy.mode = 'refuse'
    proxy.reset()
    await assert.rejects(b.reap(), { code: 'DATABASE_UNAVAILABLE' })
    await bench.age(taskKey)
    proxy.mode = 'up'

    const reachedAt = monotonicMs()
    let reaped = await b.reap()
    while (reaped.length === 0 && monotonicMs() < reachedAt + 10 * LEASE_MS) {
      await sleep(20)
      reaped = await b.reap()
    }
    assert.deepEqual(reaped.map(({ run }) => run.taskKey), [taskKey])
    assert.ok(monotonicMs() - reachedAt >= LEASE_MS)
  })

  it('a slow line costs a run nothing', async (t) => {
    proxy.latencyMs = 20
    t.after(() => void (proxy.latencyMs = 0))
    const ledger = await behindProxy(t, { heartbeats: 'loop' })
    const outcome = await ledger.run({ task: bench.task(), key: 'a', lease: LEASE_MS }, (claim) => sleep(LEASE_MS * 1.5, undefined, { signal: claim.signal }))
    assert.deepEqual([outcome.status, await bench.outcomes(outcome.taskKey)], ['completed', []])
  })

  it('two launches of one key in one process, with the connection cut under both, are one claim', async (t) => {
    const ledger = await behindProxy(t, { heartbeats: 'loop' })
    const launch = { task: bench.task(), key: 'a' }
    const harmed = proxy.harm(/insert into [^;]*task_runs/, REPLY_LOST, 2)
    const outcomes = await Promise.all([ledger.claim(launch), ledger.claim(launch)])
    assert.equal(harmed(), 2)
    assert.deepEqual(outcomes.map(({ status }) => status).toSorted(), ['claimed', 'conflict'])
  })

  it('a connection that went silent is given up after one statement', async (t) => {
    const store = await bench.openStore({ statementTimeoutMs: 1000 }, proxy.url)
    t.after(() => {
      proxy.mode = 'up'
      proxy.reset()
    })
    let sentAt = 0
    const silent = store.transaction(async (tx) => {
      await tx.selectFrom('tasks').selectAll().execute()
      proxy.mode = 'blackhole'
      sentAt = monotonicMs()
      await tx.selectFrom('tasks').selectAll().execute()
    })
    await assert.rejects(silent, (error) => store.diagnose(error).kind === 'unavailable')
    const took = monotonicMs() - sentAt
    assert.ok(took < 1900, `it took ${took} ms: the rollback was waited for as well`)
  })
}, { atOnce: true })

// One database after the other: it counts the timers of this process.
eachServerLedger('a closed ledger', (bench) => {
  it('nothing of a statement that was cut, or of a claim left open, keeps it running', async (t) => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    const proxy = await faultProxy(bench.url)
    t.after(() => proxy.close())
    const ledger = await openLedger(proxy.url, { heartbeats: 'loop', connectTimeout: 0 })
    await claimed(ledger, { task: bench.task(), key: 'a' })
    const harmed = proxy.harm(/task_runs/, REPLY_LOST)
    await assert.rejects(ledger.runs(), { code: 'DATABASE_UNAVAILABLE' })
    await ledger.close()
    assert.deepEqual([harmed(), timers()], [1, before])
  })
})

async function claimed(ledger: Ledger, launch: Parameters<Ledger['claim']>[0]): Promise<Claim> {
  const claim = await ledger.claim(launch)
  assert.ok(claim.status === 'claimed', claim.status)
  return claim
}

/** cases 35, 57, 75, 108: heartbeats and closings that meet deadlocks, a full pool, or an outage that all have at once. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Claim } from '../../src/runtime/claim.ts'
import { openLedger, type Ledger } from '../../src/runtime/ledger.ts'
import { eachServerLedger } from '../support/each-server.ts'
import { faultProxy, type FaultProxy } from '../support/fault-proxy.ts'

const LEASE_MS = 900
/** Twice as many jobs as the ledger has connections. */
const JOBS = 8
const ROLLED_BACK = { postgres: ['40P01', '40001'], mariadb: ['1213', '1020'], mysql: ['1213', '1205'] }
const HEARTBEAT = /^update \S*task_runs\S* set .heartbeat_at/

eachServerLedger('starved', (bench, { name }) => {
  let proxy: FaultProxy
  before(async () => {
    proxy = await faultProxy(bench.url)
  })
  after(() => proxy.close())

  async function opened(t: { after(hook: () => Promise<void>): void }, connectTimeout = '20s'): Promise<Ledger> {
    const ledger = await openLedger(proxy.url, { heartbeats: 'loop', connectTimeout })
    t.after(() => ledger.close())
    return ledger
  }

  async function claimed(ledger: Ledger, key = 'a'): Promise<Claim> {
    const claim = await ledger.claim({ task: bench.task(), key, lease: LEASE_MS, heartbeat: 100 })
    assert.ok(claim.status === 'claimed', claim.status)
    return claim
  }

  it('case 35: a heartbeat that deadlocks three times is sent again, and the lease is kept', async (t) => {
    const ledger = await opened(t)
    for (const error of ROLLED_BACK[name]) {
      const claim = await claimed(ledger)
      const harmed = proxy.harm(HEARTBEAT, { execute: null, error }, 3)
      const renewed = new Promise<void>((resolve) => claim.onRenewed(() => harmed() === 3 && resolve()))
      await renewed
      assert.equal(claim.signal.aborted, false)
      await claim.complete()
      assert.deepEqual(await bench.outcomes(claim.taskKey), [])
    }
  })

  it(`case 75: ${JOBS} jobs that hold every connection of the pool for two leases are renewed all the while, and complete at the first attempt`, async (t) => {
    const ledger = await opened(t)
    const claims = await Promise.all(Array.from({ length: JOBS }, () => claimed(ledger)))
    await Promise.all(claims.map((claim) => claim.transaction(() => sleep(2 * LEASE_MS))))
    for (const { taskKey } of claims) {
      const row = await bench.row(taskKey)
      assert.deepEqual([row['status'], row['attempt'], await bench.outcomes(taskKey)], ['completed', 1, []])
    }
  })

  it('case 108: a question that finds the pool full waits or is told so, and no job with a valid lease is disturbed', async (t) => {
    const ledger = await opened(t, '1s')
    const claims = await Promise.all(Array.from({ length: JOBS / 2 }, () => claimed(ledger)))
    const held = Promise.withResolvers<void>()
    const jobs = claims.map((claim) => claim.transaction(() => held.promise))
    const asked = ledger.runs().then(() => 'answered', (error: { code?: string }) => error.code)
    await sleep(2 * LEASE_MS)
    held.resolve()
    await Promise.all(jobs)
    assert.match(String(await asked), /^(answered|DATABASE_UNAVAILABLE)$/)
    for (const { taskKey, signal } of claims) assert.deepEqual([signal.aborted, (await bench.row(taskKey))['status'], await bench.outcomes(taskKey)], [false, 'completed', []])
    assert.equal((await ledger.runs({ task: claims[0]!.task })).length, 1)
  })

  it(`case 57: ${JOBS} runs that are given back while nothing can be reached are given back when it can, and claimed again, without a restart`, async (t) => {
    const ledger = await opened(t)
    const claims = await Promise.all(Array.from({ length: JOBS }, () => claimed(ledger)))
    proxy.mode = 'refuse'
    proxy.reset()
    const released = Promise.allSettled(claims.map((claim) => claim.release()))
    await sleep(300)
    proxy.mode = 'up'
    const ends = await released
    assert.deepEqual(ends.map(({ status }) => status), claims.map(() => 'fulfilled'))
    for (const { task } of claims) {
      const again = await ledger.run({ task, key: 'a' }, ({ attempt }) => attempt)
      assert.deepEqual([again.status, 'value' in again && again.value], ['completed', 1])
    }
  })
}, { atOnce: true })

/** Heartbeats on a thread of their own: a handler that blocks the event loop keeps its lease, and a lost one is heard of. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Claim } from '../../src/runtime/claim.ts'
import type { Launch } from '../../src/runtime/launch.ts'
import type { Ledger } from '../../src/runtime/ledger.ts'
import { monotonicMs } from '../../src/runtime/heart.ts'
import { ThreadedPacemaker } from '../../src/runtime/threaded-pacemaker.ts'
import { readRun } from '../../src/store/read-run.ts'
import { eachLedger, everybodyDied, request } from '../support/ledgers.ts'

const LEASE_MS = 900

function blockFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

eachLedger('threaded heartbeats', (bench) => {
  const renewal = (claim: Claim) =>
    new Promise<void>((resolve, reject) => {
      claim.onRenewed(resolve)
      claim.signal.addEventListener('abort', () => reject(claim.signal.reason as Error))
    })

  async function claimed(ledger: Ledger, terms: Pick<Launch, 'lease' | 'heartbeat'> = { lease: LEASE_MS, heartbeat: 150 }): Promise<Claim> {
    const outcome = await ledger.claim({ task: bench.task(), key: 'one', ...terms })
    assert.ok(outcome instanceof Claim)
    return outcome
  }

  let opened: Promise<Ledger> | undefined

  /** A ledger whose thread runs and has its connection; the same one for all tests. */
  function warm(): Promise<Ledger> {
    opened ??= bench.open({ heartbeats: 'thread' }).then(async (ledger) => {
      const claim = await claimed(ledger, { lease: '30s', heartbeat: 20 })
      await renewal(claim)
      await claim.complete()
      return ledger
    })
    return opened
  }

  it('case 76: a handler that blocks the event loop for three leases keeps its lease, while another process reaps all the time', async (t) => {
    const ledger = await warm()
    const reaper = spawn(process.execPath, [join(import.meta.dirname, 'fixture-reaper.ts'), bench.url], { stdio: ['pipe', 'pipe', 'inherit'] })
    t.after(() => reaper.kill('SIGKILL'))
    const said = createInterface(reaper.stdout)[Symbol.asyncIterator]()
    assert.equal((await said.next()).value, 'ready')
    const claim = await claimed(ledger)

    blockFor(3 * LEASE_MS)

    const run = await readRun(bench.store, claim.taskKey)
    reaper.stdin.end('enough')
    const { passes, reaped } = JSON.parse((await said.next()).value as string) as { passes: number; reaped: number }
    await setImmediate()
    assert.deepEqual([claim.signal.aborted, run?.status, run?.leaseOver, reaped], [false, 'processing', false, 0])
    assert.ok(passes > 3, `the reaper looked ${passes} times`)
    await claim.complete()
    assert.deepEqual(await bench.outcomes(claim.taskKey), [])
  })

  it('a lease that was lost is heard of through the thread, and other claims live on', async () => {
    const ledger = await warm()
    const [lost, kept] = [await claimed(ledger), await claimed(ledger)]
    const renewed = renewal(kept)
    await bench.claim(request(lost.task), everybodyDied)

    if (!lost.signal.aborted) await once(lost.signal, 'abort')
    await renewed

    assert.deepEqual([lost.signal.reason.code, kept.signal.aborted], ['LEASE_LOST', false])
    await kept.complete()
  })

  it('until the thread has its eye on a lease, this one has', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] })
    const pacemaker = new ThreadedPacemaker(bench.url)
    const lost: string[] = []
    pacemaker.start({ taskKey: 'a', instanceId: 'b', attempt: 1, fence: 1n }, { leaseMs: 1000, heartbeatMs: 200 }, monotonicMs(), { lost: (reason) => lost.push(reason) })

    t.mock.timers.tick(700)
    const early = [...lost]
    t.mock.timers.tick(60)

    assert.deepEqual([early, lost], [[], ['not_renewed']]) // All in one turn: the thread cannot have said a word.
    t.mock.timers.reset()
    await pacemaker.close()
  })

  it('a claim whose answer came when its lease was over already is lost, and Node has no warning for the user', async () => {
    const warnings: Error[] = []
    const hear = (warning: Error) => void warnings.push(warning)
    process.on('warning', hear)
    const pacemaker = new ThreadedPacemaker(bench.url)

    const reason = await new Promise((resolve) => pacemaker.start({ taskKey: 'a', instanceId: 'b', attempt: 1, fence: 1n }, { leaseMs: 1000, heartbeatMs: 200 }, monotonicMs() - 5_000, { lost: resolve }))

    assert.equal(reason, 'not_renewed')
    await setImmediate()
    process.off('warning', hear)
    assert.deepEqual(warnings, [])
    await pacemaker.close()
  })

  // The last of the suite: it closes the ledger.
  it('the thread ends with its ledger, and keeps no process alive', async () => {
    const ledger = await warm()
    await (await claimed(ledger)).complete()

    await ledger.close()

    assert.deepEqual(process.getActiveResourcesInfo().filter((name) => name === 'MessagePort'), [])
  })
})

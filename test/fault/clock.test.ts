/** case 20: clocks that are wrong or jump. Leases are judged by the database's clock, in one statement, by differences only. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { openLedger } from '../../src/runtime/ledger.ts'
import { migrate } from '../../src/runtime/schema.ts'
import { eachLedger } from '../support/ledgers.ts'
import { onlyOn } from '../support/only-on.ts'
import { privatePostgres, type PrivatePostgres } from '../support/private-postgres.ts'
import { startFixture } from '../support/fixture-process.ts'

const HOUR_MS = 3_600_000

eachLedger('host clock', (bench) => {
  for (const hours of [-8, 8]) {
    it(`case 20: a host whose clock is ${hours} hours off reaps what is expired, and nothing else`, async (t) => {
      const ledger = await bench.open()
      const [live, dead, theirs] = [bench.task(), bench.task(), bench.task()]
      for (const task of [live, dead]) await ledger.claim({ task, key: 'a', lease: '60s' })
      await bench.age(`${dead}:a`, 61)

      const host = await startFixture(t, 'fault/fixture-reaper.ts', [bench.url, theirs, 'a', String(hours * HOUR_MS)]).says('reaped')
      const reapedByUs = await ledger.reap()

      assert.ok(Math.abs(Number(host['clock']) - Date.now() - hours * HOUR_MS) < 60_000, 'its clock is off')
      assert.deepEqual([host['status'], host['reaped']], ['claimed', [`${dead}:a`]])
      assert.deepEqual(reapedByUs, [], 'what it claimed is as live as any other')
    })
  }
})

onlyOn('postgres', 'database clock', () => {
  let server: PrivatePostgres
  before(async () => {
    server = await privatePostgres()
    await server.startWithFalseClock()
    await migrate(server.url)
  })
  after(() => server?.remove())

  it('case 20: no live lease is reaped when the clock of the database goes back by an hour, and launches go on', async (t) => {
    const [owner, reaper] = [await openLedger(server.url), await openLedger(server.url)]
    t.after(() => Promise.all([owner.close(), reaper.close()]))
    const claim = await owner.claim({ task: 'long', key: 'a', lease: '2s', heartbeat: '100ms' })
    assert.ok(claim.status === 'claimed')
    const heartbeatAt = async () => (await reaper.show(claim.taskKey)).run!.heartbeatAt!.getTime()
    const before = await heartbeatAt()

    server.setClock('-1h')
    const reaped = []
    const beats = new Set<number>()
    const wentBack = () => Math.min(...beats) < before - 3_500_000 // The server takes its time to see it.
    while (!(wentBack() && beats.size >= 5) && !claim.signal.aborted) {
      reaped.push(...(await reaper.reap()))
      beats.add(await heartbeatAt())
    }
    const next = await reaper.run({ task: 'next', key: 'a' }, () => 'done')
    await claim.complete()

    assert.deepEqual([wentBack(), reaped, claim.signal.aborted, next.status], [true, [], false, 'completed'])
  })
})

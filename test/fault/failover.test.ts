/** case 61: the primary dies and a standby takes its place; what it acknowledged is there, and leases decide alone. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { openLedger } from '../../src/runtime/ledger.ts'
import { migrate } from '../../src/runtime/schema.ts'
import { faultProxy, type FaultProxy } from '../support/fault-proxy.ts'
import { onlyOn } from '../support/only-on.ts'
import { privatePostgres, type PrivatePostgres } from '../support/private-postgres.ts'
import { startFixture } from '../support/fixture-process.ts'

onlyOn('postgres', 'fail-over', () => {
  let primary: PrivatePostgres
  let standby: PrivatePostgres
  /** The address that clients know; it moves to the new primary. */
  let address: FaultProxy

  before(async () => {
    primary = await privatePostgres()
    await primary.start()
    standby = await primary.standby()
    address = await faultProxy(primary.url, { target: { path: primary.socket } })
    await migrate(address.url)
  })
  after(async () => {
    await address?.close()
    await primary?.remove()
  })

  it('case 61: a URL with both servers reaches the primary, wherever it stands in the list', async () => {
    for (const hosts of [`${primary.host},${standby.host}`, `${standby.host},${primary.host}`]) {
      const ledger = await openLedger(`postgres://app@${hosts}/postgres?target_session_attrs=read-write`, { connectTimeout: '2s' })
      const outcome = await ledger.run({ task: 'either', key: hosts }, () => {})
      await ledger.close()
      assert.equal(outcome.status, 'completed')
    }
  })

  it('case 61: a live owner keeps its run, a dead one is reaped by the age of its lease, and a completed run stays completed', async (t) => {
    const ledger = await openLedger(address.url, { connectTimeout: '20s' })
    const later = await openLedger(address.url, { connectTimeout: '20s', clock: { offsetMs: 60_000 } })
    t.after(() => Promise.all([ledger.close(), later.close()]))
    await ledger.run({ task: 'done', key: 'a' }, () => {})
    const owner = startFixture(t, 'fault/fixture-job.ts', [address.url, 'live', 'a', '20s'])
    const { claimed: fence } = await owner.says('claimed')
    const listed = startFixture(t, 'fault/fixture-job.ts', [`postgres://app@${primary.host},${standby.host}/postgres`, 'listed', 'a', '20s'])
    const { claimed: listedFence } = await listed.says('claimed')
    const dead = await ledger.claim({ task: 'dead', key: 'a', lease: '30s', heartbeat: '10s' })
    assert.ok(dead.status === 'claimed')

    await primary.kill()
    await standby.promote()
    address.target = { path: standby.socket }
    address.reset()

    await owner.says('renewed')
    owner.send('complete')
    assert.deepEqual(await owner.says('completed'), { completed: fence })
    await listed.says('renewed')
    listed.send('complete')
    assert.deepEqual(await listed.says('completed'), { completed: listedFence }, 'with both servers in the URL, nothing needs to move')
    assert.deepEqual(await ledger.reap(), [], 'nobody is reaped before the lease is over')
    assert.deepEqual((await later.reap()).map(({ run, now }) => [run.taskKey, now]), [['dead:a', 'pending']])
    assert.deepEqual((await ledger.runs()).filter(({ task }) => task !== 'either').map(({ taskKey, status }) => `${taskKey} ${status}`).toSorted(), ['dead:a pending', 'done:a completed', 'listed:a completed', 'live:a completed'])
  })
})

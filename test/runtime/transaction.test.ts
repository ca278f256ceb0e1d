/** Finishing a run with its data: one commit, guarded, on the ledger's connection or the caller's own. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { sql } from 'kysely'
import { eachDatabase } from '../support/databases.ts'
import { callersOf } from './caller.ts'
import { claimOf, openTwo, rejectsWith, takeOver, type Scene } from './claims.ts'

eachDatabase('finishing with the data', (db) => {
  let scene: Scene
  before(async () => {
    scene = await openTwo(db)
    await db.admin('create table balances (account integer primary key, amount integer not null)')
  })
  after(() => scene.close())

  const write = (account: number) => `insert into balances (account, amount) values (${account}, 100)`
  const written = async (account: number) => (await db.admin(`select amount from balances where account = ${account}`)).length === 1
  const statusOf = async (key: string) => (await scene.ledger.show(key)).run?.status

  it('the data and the completion are there together', async () => {
    const claim = await claimOf(scene.ledger)
    const value = await claim.transaction(async (tx) => {
      await sql.raw(write(1)).execute(tx)
      return 'what the work returned'
    })
    assert.deepEqual([value, await written(1), await statusOf(claim.taskKey)], ['what the work returned', true, 'completed'])
  })

  it('when the lease is gone nothing is written, and the writer is told', async () => {
    const claim = await claimOf(scene.ledger)
    const second = await takeOver(scene, claim)
    await rejectsWith('LEASE_LOST', claim.transaction(async (tx) => void (await sql.raw(write(2)).execute(tx))))
    assert.deepEqual([await written(2), await statusOf(claim.taskKey)], [false, 'processing'])
    await second.transaction(async (tx) => void (await sql.raw(write(2)).execute(tx)))
    assert.deepEqual([await written(2), await statusOf(claim.taskKey)], [true, 'completed'])
  })

  it('what the work throws rolls all of it back and leaves the claim open', async () => {
    const claim = await claimOf(scene.ledger)
    const failing = claim.transaction(async (tx) => {
      await sql.raw(write(3)).execute(tx)
      throw new Error('the figures do not add up')
    })
    await assert.rejects(failing, /do not add up/)
    assert.deepEqual([await written(3), await statusOf(claim.taskKey)], [false, 'processing'])
    await claim.complete()
  })

  it('a handler that finished its run with its data is a completed run', async () => {
    const outcome = await scene.ledger.run({ task: 'billing', key: 'by-handler' }, (claim) => claim.transaction(async (tx) => void (await sql.raw(write(4)).execute(tx))))
    assert.deepEqual([outcome.status, await written(4), await statusOf('billing:by-handler')], ['completed', true, 'completed'])
  })

  for (const [index, open] of callersOf(db.name).entries()) {
    const account = (n: number) => 10 * (index + 1) + n

    it(`completeIn: on the caller's own connection (${open.name}) it counts when that commits`, async () => {
      const claim = await claimOf(scene.ledger)
      const caller = await open(scene.url)
      await caller.run(write(account(1)))
      await claim.completeIn(caller.connection)
      await caller.commit()
      assert.equal(await claim.isCompleted(), true)
      await claim.complete() // and says nothing more
      assert.deepEqual([await written(account(1)), await statusOf(claim.taskKey)], [true, 'completed'])
    })

    it(`completeIn: rolled back by the caller (${open.name}), the run is still held`, async () => {
      const claim = await claimOf(scene.ledger)
      const caller = await open(scene.url)
      await claim.completeIn(caller.connection)
      await caller.rollback()
      assert.equal(await claim.isCompleted(), false)
      await rejectsWith('LEASE_LOST', claim.complete())
      await claim.fail('rolled back')
    })

    it(`54: refused, completeIn leaves the caller's transaction (${open.name}) usable`, async () => {
      const claim = await claimOf(scene.ledger)
      await takeOver(scene, claim)
      const caller = await open(scene.url)
      await rejectsWith('LEASE_LOST', claim.completeIn(caller.connection))
      await caller.run(write(account(2)))
      await caller.commit()
      assert.equal(await written(account(2)), true)
    })
  }

  it('52: no instant is compared: a row with microseconds that JavaScript does not have is completed, every time', async () => {
    for (let round = 0; round < 20; round++) {
      const claim = await claimOf(scene.ledger)
      await db.admin(`update task_runs set heartbeat_at = '2126-01-01 00:00:00.123456', started_at = '2026-01-01 00:00:00.654321' where task_key = '${claim.taskKey}'`)
      await claim.transaction(async () => {})
    }
  })

  it('what is no connection with a transaction is refused before anything is written', async () => {
    const claim = await claimOf(scene.ledger)
    for (const wrong of [{}, { query: () => {} }, new Map()]) await rejectsWith('INVALID_OPTION', claim.completeIn(wrong))
    assert.equal(await statusOf(claim.taskKey), 'processing')
  })
})

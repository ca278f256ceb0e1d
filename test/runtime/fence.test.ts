/** Fences at the protected resource, and their jump after a restored backup. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { fence } from '../../src/index.ts'
import { eachDatabase } from '../support/databases.ts'
import { callersOf } from './caller.ts'
import { claimOf, openTwo, rejectsWith, takeOver, type Scene } from './claims.ts'

eachDatabase('fence', (db) => {
  let scene: Scene
  before(async () => {
    scene = await openTwo(db)
    await db.admin('create table balances (account integer primary key, amount integer not null)')
  })
  after(() => scene.close())

  const tokenOf = async (resource: string) => (await db.admin(`select token, stale from fenced_resources where resource = '${resource}'`))[0]

  it('a lower token is refused and changes nothing; the same may write again; a greater one goes on', async () => {
    const { fences } = scene.ledger
    await fences.check('report', 7)
    await fences.check('report', 7n)
    await rejectsWith('STALE_FENCE', fences.check('report', '6'))
    assert.deepEqual(await tokenOf('report'), { token: 7, stale: 0 })
    await fences.check('report', 8)
    assert.deepEqual(await tokenOf('report'), { token: 8, stale: 0 })
  })

  it('69: tokens are compared as numbers, exactly, beyond 2^53', async () => {
    const { fences } = scene.ledger
    await fences.check('digits', '9')
    await fences.check('digits', '10')
    await rejectsWith('STALE_FENCE', fences.check('digits', '9'))
    await fences.check('large', 9007199254740993n)
    await rejectsWith('STALE_FENCE', fences.check('large', '9007199254740992'))
    for (const wrong of [2 ** 53, 0, -1, 1.5, 'seven', '9223372036854775808']) await rejectsWith('INVALID_OPTION', fences.check('large', wrong))
  })

  it('69: a fence beyond 2^53 goes exactly from the row to the claim and back into its guards', async () => {
    const claim = await claimOf(scene.ledger, 'large', 'large-fence')
    await db.admin(`update task_fences set counter = 9007199254740992 where scope = 'large-fence'`)
    const second = await takeOver(scene, claim)
    assert.equal(second.fence, 9007199254740993n)
    assert.equal(await second.effect('charge', () => 1), 1)
    assert.equal((await scene.ledger.effects.read(`${second.taskKey}#charge`)).fence, 9007199254740993n)
    await second.complete()
  })

  for (const open of callersOf(db.name)) {
    it(`54: guard on the caller's own connection (${open.name}): refused, its transaction is still usable`, async () => {
      const resource = `balances/${open.name}`
      const writer = await open(scene.url)
      await fence.guard(writer.connection, resource, 5n)
      await fence.guard(writer.connection, resource, 5n)
      await rejectsWith('STALE_FENCE', fence.guard(writer.connection, resource, 4n))
      await writer.run('update balances set amount = 1 where account = 1')
      await writer.commit()
      assert.deepEqual(await tokenOf(resource), { token: 5, stale: 0 })
    })
  }

  it("a writer that was paused beyond its lease cannot write over its successor's balance", async () => {
    const [open] = callersOf(db.name)
    const paused = await claimOf(scene.ledger)
    const successor = await takeOver(scene, paused)
    const today = await open!(scene.url)
    await fence.guard(today.connection, 'balance of 42', successor.fence)
    await today.run('insert into balances (account, amount) values (42, 200)')
    await today.commit()
    const yesterday = await open!(scene.url)
    await rejectsWith('STALE_FENCE', fence.guard(yesterday.connection, 'balance of 42', paused.fence))
    await yesterday.rollback()
    assert.deepEqual(await db.admin('select amount from balances where account = 42'), [{ amount: 200 }])
  })

  it('62: after a restored backup a bump jumps every fence, of scopes that the backup does not know as well', async () => {
    const known = await claimOf(scene.ledger, 'tail-1', 'known-scope')
    const backup = await db.admin('select scope, counter from task_fences where counter < 1000000')
    const lost = [await takeOver(scene, known), await claimOf(scene.ledger, 'tail-2', 'new-scope')]
    await lost[1]!.effect('charge', () => 'charged', { key: 'charge:order-62' })
    await restore(backup)
    await scene.ledger.fences.bump()
    const again = [await claimOf(scene.ledger, 'tail-3', 'known-scope'), await claimOf(scene.ledger, 'tail-4', 'new-scope')]
    for (const [index, claim] of again.entries()) assert.ok(claim.fence > lost[index]!.fence, `${claim.fence} > ${lost[index]!.fence}`)
  })

  /** The fences as they were in the backup: what came after is lost. */
  async function restore(rows: Record<string, unknown>[]): Promise<void> {
    await db.admin('delete from task_fences')
    for (const { scope, counter } of rows) await db.admin(`insert into task_fences (scope, counter) values ('${String(scope)}', ${String(counter)})`)
  }
})

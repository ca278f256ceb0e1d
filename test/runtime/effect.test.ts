/** Effects: done once per key, in doubt when nobody knows, never silently repeated. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { NotPerformed, type Claim, type EffectRecord } from '../../src/index.ts'
import { openStore } from '../../src/runtime/open-store.ts'
import { takeEffect } from '../../src/store/begin-effect.ts'
import { readEffect } from '../../src/store/read-effect.ts'
import { eachDatabase } from '../support/databases.ts'
import { claimOf, openTwo, rejectsWith, takeOver, type Scene } from './claims.ts'

eachDatabase('effect', (db) => {
  let scene: Scene
  before(async () => {
    scene = await openTwo(db)
  })
  after(() => scene.close())

  it('done once, its recorded result comes back and perform is not called again', async () => {
    const claim = await claimOf(scene.ledger)
    const calls: string[] = []
    const charge = async (key: string) => ({ receipt: `r-${calls.push(key)}`, amount: 12.5 })
    const first = await claim.effect('charge', charge)
    assert.deepEqual(await claim.effect('charge', charge), first)
    assert.deepEqual(calls, [`${claim.taskKey}#charge`])
  })

  it('96: after a crash between the call and its record, the next attempt is told and does not call', async () => {
    const claim = await claimOf(scene.ledger)
    await beginAndVanish(claim)
    const second = await takeOver(scene, claim)
    const error = await rejectsWith('EFFECT_IN_DOUBT', second.effect('charge', mustNotBeCalled))
    assert.deepEqual([error.facts['effectKey'], error.facts['attempt']], [`${claim.taskKey}#charge`, 1])
    const listed = await scene.ledger.effects.list({ inDoubt: true, taskKey: claim.taskKey })
    assert.deepEqual(listed.map(({ effectKey, status, live }) => ({ effectKey, status, live })), [{ effectKey: `${claim.taskKey}#charge`, status: 'started', live: false }])
  })

  it('96: repeated on demand, it is called with the same idempotency key', async () => {
    const claim = await claimOf(scene.ledger)
    await beginAndVanish(claim)
    const second = await takeOver(scene, claim)
    const key = await second.effect('charge', (idempotencyKey) => idempotencyKey, { onDoubt: 'repeat' })
    assert.equal(key, `${claim.taskKey}#charge`)
    const { status, calls, attempt } = await scene.ledger.effects.read(key)
    assert.deepEqual({ status, calls, attempt }, { status: 'done', calls: 2, attempt: 2 })
  })

  it('reconciled: whoever knows says that it happened, that it did not, or that nobody can say', async () => {
    for (const [label, answer] of [['yes', { done: true, result: 'from the bank' }], ['no', { done: false }], ['unknown', undefined]] as const) {
      const first = await claimOf(scene.ledger, label)
      await beginAndVanish(first)
      const second = await takeOver(scene, first)
      const asked: EffectRecord[] = []
      const effect = second.effect('charge', () => 'performed', { onDoubt: (record) => (asked.push(record), answer) })
      if (answer) assert.equal(await effect, answer.done ? 'from the bank' : 'performed')
      else await rejectsWith('EFFECT_IN_DOUBT', effect)
      assert.equal(asked[0]?.attempt, 1)
      assert.equal((await scene.ledger.effects.read(`${second.taskKey}#charge`)).status, answer ? 'done' : 'in_doubt')
    }
  })

  it('that perform threw leaves it in doubt, unless it is certain that nothing happened', async () => {
    const claim = await claimOf(scene.ledger)
    await assert.rejects(claim.effect('mail', () => Promise.reject(new Error('socket hang up'))), /socket hang up/)
    await rejectsWith('EFFECT_IN_DOUBT', claim.effect('mail', mustNotBeCalled))
    await assert.rejects(claim.effect('card', () => Promise.reject(new NotPerformed('card declined'))), /card declined/)
    assert.equal(await claim.effect('card', () => 'accepted'), 'accepted')
  })

  it('two live attempts never perform the same business effect at once', async () => {
    const [one, two] = [await claimOf(scene.ledger, 'a', 'task-a'), await claimOf(scene.other, 'b', 'task-b')]
    const { promise: gate, resolve: finish } = Promise.withResolvers<string>()
    const { promise: begun, resolve: tellBegun } = Promise.withResolvers<void>()
    const first = one.effect('charge', () => (tellBegun(), gate), { key: 'charge:order-42' })
    await begun
    const error = await rejectsWith('EFFECT_HELD', two.effect('charge', mustNotBeCalled, { key: 'charge:order-42', onDoubt: 'repeat' }))
    assert.equal(error.facts['taskKey'], one.taskKey)
    finish('receipt 7')
    assert.equal(await first, 'receipt 7')
    assert.equal(await two.effect('charge', mustNotBeCalled, { key: 'charge:order-42' }), 'receipt 7')
  })

  it('an effect that happened is recorded as done even when the lease was lost meanwhile', async () => {
    const claim = await claimOf(scene.ledger)
    const { promise: gate, resolve: finish } = Promise.withResolvers<string>()
    const { promise: begun, resolve: tellBegun } = Promise.withResolvers<void>()
    const late = claim.effect('charge', () => (tellBegun(), gate))
    await begun
    const second = await takeOver(scene, claim)
    finish('it was charged')
    assert.equal(await late, 'it was charged')
    assert.equal(await second.effect('charge', mustNotBeCalled), 'it was charged')
    await rejectsWith('LEASE_LOST', claim.effect('another', mustNotBeCalled))
  })

  it('the first result that was recorded stays, also when a call that was given up for lost comes back with another', async () => {
    const claim = await claimOf(scene.ledger)
    const { promise: gate, resolve: finish } = Promise.withResolvers<string>()
    const { promise: begun, resolve: tellBegun } = Promise.withResolvers<void>()
    const late = claim.effect('charge', () => (tellBegun(), gate))
    await begun
    const second = await takeOver(scene, claim)
    assert.equal(await second.effect('charge', () => 'the second receipt', { onDoubt: 'repeat' }), 'the second receipt')
    finish('the first receipt')
    assert.equal(await late, 'the second receipt')
  })

  it('a heartbeat that comes in before the effect of its attempt is taken over keeps it', async () => {
    const [one, two] = [await claimOf(scene.ledger, 'silent', 'task-c'), await claimOf(scene.other, 'taker', 'task-d')]
    const { promise: begun, resolve } = Promise.withResolvers<void>()
    void one.effect('charge', () => (resolve(), new Promise<never>(() => {})), { key: 'charge:order-43' })
    await begun
    await db.admin(`update task_runs set heartbeat_at = '2026-01-01 00:00:00.000' where task_key = 'task-c:silent'`)
    const store = await openStore(scene.url, { clock: scene.clock })
    const seen = await readEffect(store, 'charge:order-43')
    assert.equal(seen?.live, false)
    await one.heartbeat()
    const call = { effectKey: 'charge:order-43', name: 'charge', task: 'task-d', callId: 'x'.repeat(36), holder: two.handOver(), instance: scene.other.instance }
    assert.equal(await takeEffect(store, call, seen!, false), 'moved')
    assert.equal(await takeEffect(store, call, seen!, true), 'begun')
    await store.close()
  })

  it('70: every JSON value comes back as it was, and SQL NULL stands for undefined alone', async () => {
    const claim = await claimOf(scene.ledger)
    const values = [null, undefined, [], [1, 2], 'text', '', 0, false, { a: { b: null } }, 'café 💥 \u0000 \ud800', 1e300]
    for (const [index, value] of values.entries()) {
      assert.deepEqual(await claim.effect(`value-${index}`, () => value), value)
      assert.deepEqual(await claim.effect(`value-${index}`, mustNotBeCalled), value)
    }
    const rows = await db.admin(`select effect_name from task_effects where result is null and effect_name like 'value-%'`)
    assert.deepEqual(rows, [{ effect_name: 'value-1' }])
  })

  it('69: a result that cannot be recorded is a clear error, the effect is done, and a person can supply the result', async () => {
    const claim = await claimOf(scene.ledger)
    const loop: Record<string, unknown> = {}
    loop['self'] = loop
    for (const [index, [value, problem]] of ([[{ n: 1n }, /bigint at "n"/], [loop, /circular/i], [Number.NaN, /NaN/], [new Map(), /Map/], ['x'.repeat(70_000), /70002 bytes/]] as [unknown, RegExp][]).entries()) {
      const error = await rejectsWith('RESULT_NOT_RECORDABLE', claim.effect(`e${index}`, () => value))
      assert.match(error.message, problem)
      assert.equal(error.cause, value)
      await rejectsWith('RESULT_NOT_RECORDABLE', claim.effect(`e${index}`, mustNotBeCalled))
    }
    const key = `${claim.taskKey}#e0`
    await scene.ledger.effects.resolve(key, { verdict: 'done', by: 'ada', result: { n: '1' } })
    assert.deepEqual(await claim.effect('e0', mustNotBeCalled), { n: '1' })
  })

  it('an operator resolves what is in doubt, and not what is done, unknown or being performed', async () => {
    const claim = await claimOf(scene.ledger)
    const key = `${claim.taskKey}#charge`
    await beginAndVanish(claim)
    await rejectsWith('EFFECT_HELD', scene.ledger.effects.resolve(key, { verdict: 'done', by: 'ada' }))
    const second = await takeOver(scene, claim)
    const resolved = await scene.ledger.effects.resolve(key, { verdict: 'not_done', by: 'ada' })
    assert.deepEqual([resolved.status, resolved.resolvedBy, resolved.resolvedAt instanceof Date], ['not_done', 'ada', true])
    assert.equal(await second.effect('charge', () => 'now'), 'now')
    await rejectsWith('INVALID_OPTION', scene.ledger.effects.resolve(key, { verdict: 'not_done', by: 'ada' }))
    await rejectsWith('EFFECT_NOT_FOUND', scene.ledger.effects.resolve('nothing', { verdict: 'done', by: 'ada' }))
  })

  it('55: only a violation of its own key means that an effect is known; any other error is one', async () => {
    const claim = await claimOf(scene.ledger)
    await db.admin('delete from task_effects')
    await db.admin(`create unique index task_effects_fence on task_effects (task_key, fence)`)
    await claim.effect('charge', () => 1)
    await assert.rejects(claim.effect('mail', mustNotBeCalled), (error: Error) => !('facts' in error))
    assert.equal((await scene.ledger.effects.list({ taskKey: claim.taskKey })).length, 1)
  })
})

describe('keys of effects', () => {
  it('two effects never share a key: what could make them is refused before anything is written', async () => {
    const { effectKey } = await import('../../src/model/effect.ts')
    assert.equal(effectKey('t:1', 'mail'), 't:1#mail')
    assert.equal(effectKey('t:1', 'mail', 'order-42'), 'order-42')
    for (const [name, key] of [['a#b', undefined], ['a', 'order#42'], ['', undefined], ['a\nb', undefined], ['n'.repeat(101), undefined]] as const) {
      assert.throws(() => effectKey('t:1', name, key), /INVALID_OPTION/)
    }
    assert.throws(() => effectKey('t'.repeat(200), 'n'.repeat(60)), /at most 255/)
  })
})

function mustNotBeCalled(): never {
  throw new Error('perform was called')
}

/** What a crash leaves: perform was called, and its end is heard by nobody. */
async function beginAndVanish(claim: Claim): Promise<void> {
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  void claim.effect('charge', () => (resolve(), new Promise<never>(() => {})))
  await begun
}

/** Only the current holder's writes are accepted: every verb of everybody else is refused and changes nothing at all. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Holder } from '../../src/model/run.ts'
import { claim } from '../../src/store/claim.ts'
import { closedByUs, complete, fail, heartbeat, release } from '../../src/store/close.ts'
import { reap } from '../../src/store/reap.ts'
import type { Store } from '../../src/store/tables.ts'
import { eachLedger, everybodyDied, instance, nobodyDied, request } from '../support/ledgers.ts'

const verbs: Record<string, (store: Store, of: Holder) => Promise<boolean>> = {
  heartbeat: async (store, of) => (await heartbeat(store, of)) !== 'lost',
  complete: (store, of) => complete(store, of, { exitCode: 0, outputTail: 'late' }),
  fail: async (store, of) => (await fail(store, of, 'error', { error: 'late' }, null)) !== 'lost',
  retry: async (store, of) => (await fail(store, of, 'error', { error: 'late' }, 0)) !== 'lost',
  release: (store, of) => release(store, of, { error: 'late' }),
}

eachLedger('refused', (bench) => {
  /** Tries every verb as `of` and compares everything recorded of the task before and after. */
  async function refusesEverything(of: Holder, task: string): Promise<void> {
    const before = await bench.recorded(task)
    for (const [name, verb] of Object.entries(verbs)) {
      assert.equal(await verb(bench.store, of), false, `${name} must be refused`)
      assert.deepEqual(await bench.recorded(task), before, `${name} must change nothing`)
    }
  }

  it('after a takeover of an expired lease', async () => {
    const task = bench.task()
    const stale = await bench.claim(request(task))
    await bench.age(stale.taskKey)
    await bench.claim(request(task))

    await refusesEverything(stale, task)
    assert.equal(await closedByUs(bench.store, stale), false)
  })

  it('after a takeover by the same instance', async () => {
    const task = bench.task()
    const same = instance()
    const stale = await bench.claim(request(task, 'one', { instance: same }))
    await bench.claim(request(task, 'one', { instance: same }), everybodyDied)

    await refusesEverything(stale, task)
  })

  it('after the reaper gave the run back', async () => {
    const task = bench.task()
    const stale = await bench.claim(request(task))
    await bench.age(stale.taskKey)
    await reap(bench.store)

    await refusesEverything(stale, task)
    assert.equal(await closedByUs(bench.store, stale), false)
  })

  it('after the reaper failed the run', async () => {
    const task = bench.task()
    const stale = await bench.claim(request(task, 'one', { maxAttempts: 1 }))
    await bench.age(stale.taskKey)
    await reap(bench.store)

    await refusesEverything(stale, task)
    assert.equal(await closedByUs(bench.store, stale), false)
  })

  it('after the holder itself completed the run', async () => {
    const task = bench.task()
    const done = await bench.claim(request(task))
    await complete(bench.store, done, {})

    await refusesEverything(done, task)
    assert.equal(await closedByUs(bench.store, done), true)
  })

  it('after the holder itself failed the run', async () => {
    const task = bench.task()
    const done = await bench.claim(request(task))
    await fail(bench.store, done, 'error', {}, null)

    await refusesEverything(done, task)
    assert.equal(await closedByUs(bench.store, done), true)
  })

  it('after the failed attempt was repeated by the same instance', async () => {
    const task = bench.task()
    const same = instance()
    const stale = await bench.claim(request(task, 'one', { instance: same }))
    await fail(bench.store, stale, 'error', {}, 0)
    await bench.claim(request(task, 'one', { instance: same }))

    await refusesEverything(stale, task)
  })

  it('after a release, when the same instance holds the same attempt again: the fence tells them apart', async () => {
    const task = bench.task()
    const same = instance()
    const stale = await bench.claim(request(task, 'one', { instance: same }))
    await release(bench.store, stale, {})
    const current = await bench.claim(request(task, 'one', { instance: same }))
    assert.deepEqual([current.attempt, current.instanceId], [stale.attempt, stale.instanceId])

    await refusesEverything(stale, task)
    assert.equal(await complete(bench.store, current, {}), true)
  })

  it('a release that was written once is recognised as ours even after somebody else has the run', async () => {
    const task = bench.task()
    const mine = await bench.claim(request(task))
    await release(bench.store, mine, {})
    const theirs = await bench.claim(request(task))

    assert.deepEqual([await closedByUs(bench.store, mine), await closedByUs(bench.store, theirs)], [true, false])
  })

  const wrong: [string, (of: Holder) => Partial<Holder>][] = [
    ['another instance', () => ({ instanceId: instance().id })],
    ['another attempt', ({ attempt }) => ({ attempt: attempt + 1 })],
    ['a larger fence', ({ fence }) => ({ fence: fence + 1n })],
    ['a smaller fence', ({ fence }) => ({ fence: fence - 1n })],
    ['another key', ({ taskKey }) => ({ taskKey: `${taskKey}x` })],
    ['the key in capitals', ({ taskKey }) => ({ taskKey: taskKey.toUpperCase() })],
    ['the key and a space', ({ taskKey }) => ({ taskKey: `${taskKey} ` })],
  ]
  for (const [what, change] of wrong) {
    it(`from a holder with ${what}`, async () => {
      const task = bench.task()
      const held = await bench.claim(request(task))

      await refusesEverything({ ...held, ...change(held) }, task)
      assert.equal(await complete(bench.store, held, {}), true)
      assert.equal(await closedByUs(bench.store, { ...held, ...change(held) }), false)
    })
  }

  it('a refused verb leaves the successor undisturbed: it completes, and a third launch finds it done', async () => {
    const task = bench.task()
    const stale = await bench.claim(request(task))
    const current = await bench.claim(request(task), everybodyDied)
    for (const verb of Object.values(verbs)) await verb(bench.store, stale)

    assert.equal(await complete(bench.store, current, {}), true)
    const third = await claim(bench.store, request(task), nobodyDied)
    assert.equal(third.status === 'conflict' && third.reason, 'done')
  })
})

/** A paused task and a window older than the kept history do not run, whoever launches them and however. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { claim } from '../../src/store/claim.ts'
import { complete, fail } from '../../src/store/close.ts'
import { interrupted } from '../support/failing-store.ts'
import { eachLedger, hourFrom, nobodyDied, request } from '../support/ledgers.ts'

eachLedger('barred', (bench) => {
  const pause = (task: string) => bench.store.db.insertInto('tasks').values({ task_name: task, schedule: null, zone: null, overlap: null, grace_seconds: null, paused_at: bench.store.now() }).execute()
  const pruneBefore = (task: string, instant: string) => bench.store.db.insertInto('tasks').values({ task_name: task, schedule: null, zone: null, overlap: null, grace_seconds: null, pruned_before: bench.store.instant(new Date(instant)) }).execute()

  async function reasonFor(...asked: Parameters<typeof request>): Promise<string> {
    const outcome = await claim(bench.store, request(...asked), nobodyDied)
    return outcome.status === 'conflict' ? outcome.reason : outcome.status
  }

  it('a new key of a paused task is a conflict, nothing is recorded as a run, and other tasks run on', async () => {
    const [paused, other] = [bench.task(), bench.task()]
    await pause(paused)

    assert.deepEqual([await reasonFor(paused), await reasonFor(other)], ['paused', 'claimed'])
    assert.deepEqual((await bench.recorded(paused)).runs, [])
  })

  it('a paused task names nobody as its holder', async () => {
    const task = bench.task()
    await pause(task)

    const outcome = await claim(bench.store, request(task), nobodyDied)

    assert.deepEqual(outcome, { status: 'conflict', reason: 'paused', taskKey: `${task}:one`, holder: null, dueAt: null })
  })

  it('a retry of a paused task waits, and so does the run of a dead owner', async () => {
    const task = bench.task()
    await fail(bench.store, await bench.claim(request(task, 'retry')), 'error', {}, 0)
    await bench.claim(request(task, 'dead'))
    await bench.age(`${task}:dead`)
    await pause(task)
    const before = await bench.recorded(task)

    const reasons = []
    for (const label of ['retry', 'dead']) reasons.push(await reasonFor(task, label), await reasonFor(task, label, { isKnown: true }))

    assert.deepEqual(reasons, ['paused', 'paused', 'paused', 'paused'])
    assert.deepEqual(await bench.recorded(task), before)
  })

  it('a pause that comes between two looks still bars the claim', async () => {
    const task = bench.task()
    const late = interrupted(bench.store, async (moment) => {
      if (moment === 'before insertFenced') await pause(task)
    })

    const outcome = await claim(late, request(task), nobodyDied)

    assert.equal(outcome.status === 'conflict' && outcome.reason, 'paused')
    assert.deepEqual((await bench.recorded(task)).runs, [])
  })

  it('pruning does not reopen a window: what is older than the kept history is not run again', async () => {
    const task = bench.task()
    const window = hourFrom('2026-09-20T10:00:00Z')
    await complete(bench.store, await bench.claim(request(task, 'old', { window })), {})
    await pruneBefore(task, '2026-09-20T10:00:00.001Z')
    await bench.store.db.deleteFrom('task_runs').where('task_name', '=', task).execute()

    assert.equal(await reasonFor(task, 'old', { window }), 'pruned')
    assert.deepEqual((await bench.recorded(task)).runs, [])
  })

  it('the first window that was kept, later ones, and runs without a window are not pruned', async () => {
    const task = bench.task()
    await pruneBefore(task, '2026-09-20T10:00:00Z')

    const outcomes = []
    for (const window of [hourFrom('2026-09-20T10:00:00Z'), hourFrom('2026-09-20T11:00:00Z'), null]) outcomes.push(await reasonFor(task, String(window?.start.getUTCHours()), { window, concurrencyKey: null }))

    assert.deepEqual(outcomes, ['claimed', 'claimed', 'claimed'])
  })
})

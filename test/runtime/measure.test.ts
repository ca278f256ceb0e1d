/** Counters are right over pruning, retries and several counters at once, and never fall; gauges say how things are now. */
import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import type { Measures } from '../../src/index.ts'
import { every } from '../../src/model/window/schedule.ts'
import { measure } from '../../src/runtime/measure.ts'
import { eachLedger, request } from '../support/ledgers.ts'
import { awayFromTheHour, hour } from '../support/hour.ts'
import { interrupted } from '../support/failing-store.ts'
import { pastConflict, pastRun } from '../support/windows.ts'

const hourly = every('1h')

eachLedger('measure', (bench) => {
  before(awayFromTheHour)

  /** What happened until now is settled then. */
  const later = (minutes: number) => bench.openStore({ clock: { offsetMs: minutes * 60_000 } })

  /** As if nobody had counted for long: the past of the next test is made after its time. */
  const rewind = () => bench.store.db.updateTable('task_totals').set({ counted_before: bench.store.instant(hour(50)) }).where('ends', '=', 'mark').execute()

  function counts({ runs, attempts }: Measures, task: string): Record<string, number> {
    const ours = [...runs, ...attempts].filter((total) => total.task === task)
    return Object.fromEntries(ours.map(({ ends, outcome, reason, endings }) => [[ends, outcome, reason].filter(Boolean).join(' '), endings]))
  }

  it('counts runs by outcome and reason, with what they took, and conflicts by reason', async () => {
    const task = bench.task()
    for (const back of [5, 4]) await pastRun(bench.store, task, hourly, hour(back), { tookSeconds: 10 })
    await pastRun(bench.store, task, hourly, hour(3), { status: 'failed' })
    await pastRun(bench.store, task, hourly, hour(2), { status: 'failed', reason: 'lost' })
    for (const reason of ['overlap', 'overlap', 'held']) await pastConflict(bench.store, `${task}:x`, reason)

    const measures = await measure(await later(2))

    assert.deepEqual(counts(measures, task), { 'run completed': 2, 'run failed exit': 1, 'run failed lost': 1, 'attempt conflict overlap': 2, 'attempt conflict held': 1 })
    assert.deepEqual(measures.runs.filter((total) => total.task === task && total.outcome === 'completed').map(({ seconds }) => Math.round(seconds)), [20])
  })

  it('each ending is counted once, by whichever of many measures, and stays counted when it is pruned or retried', async () => {
    const task = bench.task()
    for (const back of [9, 8, 7]) await pastRun(bench.store, task, hourly, hour(back))
    await pastRun(bench.store, task, hourly, hour(6), { status: 'failed' })
    await rewind()
    const first = counts(await measure(await later(2)), task)

    await bench.store.db.deleteFrom('task_runs').where('task_name', '=', task).where('status', '=', 'completed').execute()
    await bench.store.db.updateTable('task_runs').set({ status: 'pending', failure_reason: null, finished_at: null }).where('task_name', '=', task).execute()
    const stores = await Promise.all([3, 3, 4, 5].map(later))
    const after = await Promise.all(stores.map((store) => measure(store)))

    assert.deepEqual(first, { 'run completed': 3, 'run failed exit': 1 })
    assert.deepEqual(after.map((measures) => counts(measures, task)), after.map(() => first))
  })

  it('of two that count at once one adds, and both know the sum', async () => {
    const task = bench.task()
    await measure(await later(10))
    await rewind()
    await pastRun(bench.store, task, hourly, hour(5))
    let raced = false
    const slow = interrupted(await later(11), async (moment) => {
      if (moment !== 'before transaction' || raced) return
      raced = true
      await measure(await later(11))
    })

    assert.deepEqual(counts(await measure(slow), task), { 'run completed': 1 })
    assert.deepEqual(counts(await measure(await later(11)), task), { 'run completed': 1 })
  })

  it('an ending is counted when it is a minute old: whose commit is under way must not be passed over', async () => {
    const task = bench.task()
    await measure(await later(20))
    const claimed = await bench.claim(request(task), undefined)
    await bench.store.db.updateTable('task_runs').set({ status: 'completed', active_key: null, finished_at: (await later(20)).now() }).where('task_key', '=', claimed.taskKey).execute()

    const soon = counts(await measure(await later(20.5)), task)

    assert.deepEqual([soon, counts(await measure(await later(22)), task)], [{}, { 'run completed': 1 }])
  })

  it('who may only read measures all the same', async () => {
    const task = bench.task()
    const ledger = await bench.open({ clock: { offsetMs: 40 * 60_000 } })
    await ledger.run({ task, key: 'a' }, () => {})
    const refused = interrupted(await later(45), (moment) => {
      if (moment === 'before transaction') throw Object.assign(new Error('denied'), { code: '42501', errno: 1142, errcode: 8 })
    })

    assert.deepEqual(counts(await measure(refused), task), { 'run completed': 1 })
  })

  it('gauges: what waits, runs, is lost or in doubt, when it last succeeded and is next due', async () => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.tasks.set(task, { schedule: hourly, since: hour(9) })
    await pastRun(bench.store, task, hourly, hour(6))
    await pastRun(bench.store, task, hourly, hour(5), { status: 'failed' })
    await pastRun(bench.store, task, hourly, hour(4), { status: 'pending' })
    await pastRun(bench.store, task, hourly, hour(3), { status: 'pending' })
    await pastRun(bench.store, task, hourly, hour(2), { status: 'processing', silentSeconds: 61 })
    await pastRun(bench.store, task, hourly, hour(1), { status: 'processing' })

    const now = (await ledger.tasks.measures()).now.find((one) => one.task === task)

    assert.deepEqual(now, {
      task, pending: 2, processing: 2, expiredLeases: 1, oldestPendingAt: hour(4), effectsInDoubt: 0,
      lastSuccessAt: new Date(hour(6).getTime() + 3000), lastFailureAt: new Date(hour(5).getTime() + 3000), nextDueAt: hour(-1),
    })
  })

  it('tasks that never ran, and runs of tasks that nobody described, are there as well', async () => {
    const [ledger, known, run] = [await bench.open(), bench.task(), bench.task()]
    await ledger.tasks.set(known, { schedule: hourly })
    await ledger.claim({ task: run, key: 'a' })

    const { now } = await ledger.tasks.measures()

    assert.deepEqual([known, run].map((name) => now.find(({ task }) => task === name)).map((one) => [one?.processing, one?.nextDueAt !== null]), [[0, true], [1, false]])
  })
})

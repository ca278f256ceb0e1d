/** What a monitoring system is told: each kind of problem, how bad it is, and nothing when all is well. */
import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { sql } from 'kysely'
import type { Ledger, Problem } from '../../src/index.ts'
import { every } from '../../src/model/window/schedule.ts'
import { eachLedger } from '../support/ledgers.ts'
import { awayFromTheHour, hour } from '../support/hour.ts'
import { pastConflict, pastRun, type Past } from '../support/windows.ts'

const HOUR_MS = 3_600_000
const hourly = every('1h')

eachLedger('problems', (bench) => {
  before(awayFromTheHour)

  const label = (at: Date) => at.toISOString().slice(0, 16).replace('T', '-')
  const run = (task: string, back: number, past: Past = {}) => pastRun(bench.store, task, hourly, hour(back), past)

  /** An hourly task whose grace makes the window of an hour ago the latest that is due. */
  async function hourlyTask(): Promise<{ ledger: Ledger; task: string; told(more?: Parameters<Ledger['tasks']['problems']>[0]): Promise<string[]> }> {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.tasks.set(task, { schedule: hourly, since: hour(100), graceMs: HOUR_MS })
    const told = async (more = {}) => (await ledger.tasks.problems({ task, ...more })).map(word)
    return { ledger, task, told }
  }

  const word = ({ severity, kind }: Problem) => `${severity} ${kind}`

  it('all is well when the latest window that is due has run, whatever was missed before', async () => {
    const { task, told } = await hourlyTask()
    await run(task, 1)

    assert.deepEqual(await told(), [])
  })

  it('overdue is critical: the latest window whose grace is over has not run, or waits and nobody has begun it', async () => {
    const [nobody, waits] = [await hourlyTask(), await hourlyTask()]
    await run(nobody.task, 2)
    await run(waits.task, 1, { status: 'pending' })

    const [problem] = await nobody.ledger.tasks.problems({ task: nobody.task })

    assert.deepEqual([problem?.severity, problem?.kind, problem?.taskKey, problem?.since], ['critical', 'overdue', `${nobody.task}:${label(hour(1))}`, hour(1)])
    assert.deepEqual(await waits.told(), ['critical overdue'])
  })

  it('a window that failed, runs, or is to be retried is not overdue', async () => {
    for (const past of [{ status: 'processing' }, { status: 'pending', attempt: 1 }] as const) {
      const { task, told } = await hourlyTask()
      await run(task, 1, past)
      assert.deepEqual(await told(), [])
    }
    const { task, told } = await hourlyTask()
    await run(task, 1, { status: 'failed' })
    assert.deepEqual(await told(), ['warning failed'])
  })

  it('a window that lost to another run of its task is a warning: that one is alive', async () => {
    const { task, told } = await hourlyTask()
    await pastConflict(bench.store, `${task}:${label(hour(1))}`, 'overlap')

    assert.deepEqual(await told(), ['warning overdue'])
  })

  it('a paused task, one without a schedule, and windows from before it was known are not overdue', async () => {
    const [paused, silent, young] = [await hourlyTask(), await hourlyTask(), await hourlyTask()]
    await bench.store.db.updateTable('tasks').set({ paused_at: bench.store.now() }).where('task_name', '=', paused.task).execute()
    await silent.ledger.tasks.set(silent.task, { schedule: null })
    await young.ledger.tasks.set(young.task, { since: hour(0) })

    assert.deepEqual([await paused.told(), await silent.told(), await young.told()], [[], [], []])
  })

  it('failures since the last success: one is a warning, so many in a row are critical, a cancelled run is none', async () => {
    const { task, told } = await hourlyTask()
    await run(task, 9, { status: 'failed' })
    await run(task, 8)
    await run(task, 2, { status: 'failed' })
    await run(task, 1, { status: 'failed' })

    const two = [await told(), await told({ failures: 2 })]
    await run(task, 3, { status: 'failed' })
    const three = await told()
    await run(task, 0)

    assert.deepEqual([two, three, await told()], [[['warning failed'], ['critical failed']], ['critical failed'], []])
    const cancelled = await hourlyTask()
    await run(cancelled.task, 1, { status: 'failed', reason: 'cancelled' })
    assert.deepEqual(await cancelled.told(), [])
  })

  it('runs without a window and without a schedule can fail as well', async () => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.run({ task }, () => Promise.reject(new Error('no'))).catch(() => {})

    const [problem] = await ledger.tasks.problems({ task })

    assert.deepEqual([problem?.severity, problem?.kind, problem?.taskKey?.startsWith(`${task}:manual-`)], ['warning', 'failed', true])
  })

  it('a lease that is over is a warning when nobody has closed it for long enough', async () => {
    const { task, told } = await hourlyTask()
    await run(task, 1, { status: 'processing', silentSeconds: 61 + 300 })

    assert.deepEqual([await told(), await told({ staleAfterMs: 400_000 })], [['warning stale'], []])
  })

  it('an effect in doubt is critical', async () => {
    const { ledger, task } = await hourlyTask()
    await run(task, 1)
    const claim = await ledger.claim({ task, key: 'charge', overlap: 'allow' })
    assert.equal(claim.status, 'claimed')
    await claim.effect('mail', () => Promise.reject(new Error('cut off'))).catch(() => {})
    await claim.complete()

    const problems = await ledger.tasks.problems({ task })

    assert.deepEqual(problems.map((one) => [word(one), one.taskKey]), [['critical in_doubt', `${task}:charge`]])
  })

  it('many launches that met another run within the hour are a warning; those that found their window done cost nothing', async () => {
    const { task, told } = await hourlyTask()
    await run(task, 1)
    for (let n = 0; n < 3; n++) for (const reason of ['overlap', 'done']) await pastConflict(bench.store, `${task}:${n}`, reason)

    assert.deepEqual([await told({ conflicts: 3 }), await told({ conflicts: 4 })], [['warning conflicts'], []])
    await bench.store.db.updateTable('task_attempts').set({ ended_at: bench.store.plusSeconds(bench.store.now(), sql.lit(-3700)) }).where('task_name', '=', task).execute()
    assert.deepEqual(await told({ conflicts: 3 }), [])
  })

  it('a schedule that this host cannot read is a warning, and no reason to keep silent about the others', async () => {
    const { ledger, task, told } = await hourlyTask()
    await bench.store.db.updateTable('tasks').set({ zone: 'Mars/Phobos' }).where('task_name', '=', task).execute()

    const missing = await ledger.tasks.missing()

    assert.deepEqual([await told(), missing.unreadable.map((one) => one.task)], [['warning overdue'], [task]])
    assert.equal((await ledger.tasks.measures()).now.find((one) => one.task === task)?.nextDueAt, null)
    await ledger.tasks.set(task, { schedule: null })
  })

  it('without a task it is about all of them, the critical ones first', async () => {
    const [bad, worse] = [await hourlyTask(), await hourlyTask()]
    await run(bad.task, 1, { status: 'failed' })

    const problems = await bad.ledger.tasks.problems()

    const ours = problems.filter(({ task }) => task === bad.task || task === worse.task).map(({ task }) => task)
    assert.deepEqual(ours, [worse.task, bad.task])
    assert.deepEqual(problems.map(({ severity }) => severity), problems.map(({ severity }) => severity).toSorted())
  })
})

/** What should have run and did not, found in the database alone: each window with what became of it. */
import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { sql } from 'kysely'
import { cron, every } from '../../src/model/window/schedule.ts'
import type { Ledger, MissingFilter } from '../../src/index.ts'
import { eachLedger } from '../support/ledgers.ts'
import { awayFromTheHour, hour } from '../support/hour.ts'
import { pastConflict, pastRun } from '../support/windows.ts'

const HOUR_MS = 3_600_000
const hourly = every('1h')

eachLedger('missing', (bench) => {
  before(awayFromTheHour)

  const label = (at: Date) => at.toISOString().slice(0, 16).replace('T', '-')

  /** Hours ago and what is said of them. */
  async function told(ledger: Ledger, task: string, filter: MissingFilter = {}): Promise<[number, string, string | null][]> {
    const { windows } = await ledger.tasks.missing({ task, ...filter })
    return windows.map(({ windowStart, state, reason }) => [(hour(0).getTime() - windowStart.getTime()) / HOUR_MS, state, reason])
  }

  async function hourlyTask(hours: number): Promise<{ ledger: Ledger; task: string }> {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.tasks.set(task, { schedule: hourly, since: hour(hours), graceMs: 60_000 })
    return { ledger, task }
  }

  it('tells what nobody ran from what failed, was lost, was late, is running, or waits', async () => {
    const { ledger, task } = await hourlyTask(9)
    const run = (back: number, past: Parameters<typeof pastRun>[4]) => pastRun(bench.store, task, hourly, hour(back), past)
    await run(9, {})
    await run(8, { status: 'failed' })
    await run(7, { status: 'failed', reason: 'lost' })
    await run(6, { startedSeconds: 61 })
    await run(5, { startedSeconds: 60 })
    await run(4, { status: 'processing' })
    await run(3, { status: 'processing', silentSeconds: 61 })
    await run(2, { status: 'pending' })

    assert.deepEqual((await told(ledger, task, { tooLong: '30d' })).filter(([back]) => back > 0), [
      [8, 'failed', 'exit'], [7, 'lost', 'lost'], [6, 'late', null], [4, 'running', null], [3, 'lost', null], [2, 'pending', null], [1, 'missing', null],
    ])
  })

  it('a window is missing when its grace is over, and not before', async () => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.tasks.set(task, { schedule: hourly, since: hour(0), graceMs: Date.now() - hour(0).getTime() + 600_000 })

    const before = await told(ledger, task)
    await ledger.tasks.set(task, { graceMs: 0 })

    assert.deepEqual([before, await told(ledger, task)], [[], [[0, 'missing', null]]])
  })

  it('windows count from when they were expected, within the time that is asked for, and not before what was pruned', async () => {
    const { ledger, task } = await hourlyTask(5)
    const backs = async (filter?: MissingFilter) => (await told(ledger, task, filter)).map(([back]) => back).filter((back) => back > 0)

    const all = await backs()
    const recent = await backs({ since: Date.now() - hour(3).getTime() + 60_000 })
    await bench.store.db.updateTable('tasks').set({ pruned_before: bench.store.instant(hour(2)) }).where('task_name', '=', task).execute()

    assert.deepEqual([all, recent, await backs()], [[5, 4, 3, 2, 1], [3, 2, 1], [2, 1]])
  })

  it('a launch that was refused is the reason why a window is missing', async () => {
    const { ledger, task } = await hourlyTask(2)
    await pastConflict(bench.store, `${task}:${label(hour(2))}`, 'overlap')
    await pastConflict(bench.store, `${task}:${label(hour(1))}`, 'overlap')
    await pastConflict(bench.store, `${task}:${label(hour(1))}`, 'paused')

    assert.deepEqual((await told(ledger, task)).filter(([back]) => back > 0), [[2, 'missing', 'overlap'], [1, 'missing', 'paused']])
  })

  it('a run takes too long by what it is asked, or by twice what is usual for the task when that is known', async () => {
    const { ledger, task } = await hourlyTask(6)
    const states = async (filter?: MissingFilter) => (await told(ledger, task, filter)).filter(([, state]) => state.startsWith('running')).map(([, state]) => state)
    await pastRun(bench.store, task, hourly, hour(6), { tookSeconds: 10 })
    await pastRun(bench.store, task, hourly, hour(5), { tookSeconds: 1000 })
    await pastRun(bench.store, task, hourly, hour(1), { status: 'processing' })
    const started = (seconds: number) => bench.store.db.updateTable('task_runs').set({ started_at: bench.store.plusSeconds(bench.store.now(), sql.lit(-seconds)) }).where('task_name', '=', task).where('status', '=', 'processing').execute()
    await started(100_000)

    const unknown = await states()
    await pastRun(bench.store, task, hourly, hour(4), { tookSeconds: 10 })
    const usual = await states()
    await started(1900)

    assert.deepEqual([unknown, usual, await states(), await states({ tooLong: '30m' }), await states({ tooLong: '40m' })], [['running'], ['running_too_long'], ['running'], ['running_too_long'], ['running']])
  })

  it('clock changes are those of the schedule: a skipped window of an interval is not missing, a repeated one is missing twice', async () => {
    const [ledger, task] = [await bench.open({ clock: { offsetMs: Date.parse('2027-11-08T00:00:00Z') - Date.now() } }), bench.task()]
    const halfHourly = cron('*/30 * * * *', 'America/New_York')
    await ledger.tasks.set(task, { schedule: halfHourly, since: new Date('2027-11-07T04:00:00Z'), graceMs: 0 })

    const { windows } = await ledger.tasks.missing({ task, since: '30h' })

    const night = windows.map(({ taskKey }) => taskKey.slice(task.length + 12)).filter((text) => /^0[12]:/.test(text))
    assert.deepEqual(night, ['01:00-04:00', '01:30-04:00', '01:00-05:00', '01:30-05:00', '02:00', '02:30'])
  })

  it('by task, the oldest first, at most so many, and it says when there are more', async () => {
    const [one, two] = [await hourlyTask(3), await hourlyTask(3)]
    const { windows, more } = await one.ledger.tasks.missing({ since: Date.now() - hour(3).getTime() + 60_000 })
    const ours = windows.filter(({ task }) => task === one.task || task === two.task)

    const starts = ours.map(({ windowStart }) => windowStart.getTime())
    assert.deepEqual([ours.map(({ task }) => task), starts.slice(0, 3)], [[...Array<string>(ours.length / 2).fill(one.task), ...Array<string>(ours.length / 2).fill(two.task)], [hour(3), hour(2), hour(1)].map(Number)])
    assert.equal(more, false)
    const few = await one.ledger.tasks.missing({ task: one.task, limit: 2 })
    assert.deepEqual([few.windows.length, few.more], [2, true])
  })

  it('of a task with very many windows the latest are looked at, and it is said', async () => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.tasks.set(task, { schedule: every('1s'), since: hour(24), graceMs: 0 })

    const { cut, windows } = await ledger.tasks.missing({ task, since: '7d', limit: 1 })

    assert.deepEqual(cut.map((one) => one.task), [task])
    assert.ok(Math.abs(Date.now() - cut[0]!.from.getTime() - 50_000_000) < 60_000)
    assert.ok(windows[0]!.windowStart >= cut[0]!.from)
  })

  it('a task without a schedule expects nothing, and cannot be asked about', async () => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.tasks.set(task, { graceMs: 1000 })

    assert.deepEqual((await ledger.tasks.missing()).windows.filter((window) => window.task === task), [])
    await assert.rejects(ledger.tasks.missing({ task }), { code: 'INVALID_OPTION', message: /no schedule of "task-\d+" is known/ })
  })
})

/** Which run a launch is: `--at` stands for the clock, and the rows show what a clock change did to the keys. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { embeddedLedger } from '../support/cli.ts'

describe('exec by windows', () => {
  const ledger = embeddedLedger()

  /** Launches the task once at every instant; what is then in the ledger, the oldest first. */
  async function rowsAfter(task: string, schedule: readonly string[], instants: readonly string[]) {
    for (const at of instants) assert.equal((await ledger.run(['exec', '--task', task, ...schedule, '--at', at, '--', 'true'])).code, 0)
    return ledger.sql(`select task_key, window_start from task_runs where task_name = '${task}' order by window_start`)
  }

  async function startsAfter(task: string, schedule: readonly string[], instants: readonly string[]) {
    return (await rowsAfter(task, schedule, instants)).map(({ window_start }) => String(window_start))
  }

  it('case 18: a launch five minutes late is for the window that began', async () => {
    assert.deepEqual(await rowsAfter('late', ['--cron', '0 18 * * *', '--tz', 'Asia/Shanghai'], ['2026-09-20T10:05:00Z']), [
      { task_key: 'late:2026-09-20-18:00', window_start: '2026-09-20T10:00:00.000Z' },
    ])
  })

  it('case 19: a timer that fires 2 ms early means the window about to begin', async () => {
    const instants = ['2026-09-20T11:59:59.998Z', '2026-09-20T12:00:00.000Z']
    assert.deepEqual(await startsAfter('early', ['--cron', '0 * * * *'], instants), ['2026-09-20T12:00:00.000Z'])
    assert.deepEqual(await startsAfter('strict', ['--cron', '0 * * * *', '--early', '0s'], instants), ['2026-09-20T11:00:00.000Z', '2026-09-20T12:00:00.000Z'])
    assert.deepEqual(await startsAfter('loose', ['--cron', '0 * * * *', '--early', '1m'], ['2026-09-20T11:59:00Z', '2026-09-20T11:58:59Z']), ['2026-09-20T11:00:00.000Z', '2026-09-20T12:00:00.000Z'])
  })

  it('case 4: a time that a clock change skips is due once, right after it', async () => {
    const instants = ['2026-03-08T07:00:00Z', '2026-03-08T07:30:00Z', '2026-03-08T20:00:00Z']
    assert.deepEqual(await rowsAfter('gap', ['--cron', '30 2 * * *', '--tz', 'America/New_York'], instants), [
      { task_key: 'gap:2026-03-08-03:00', window_start: '2026-03-08T07:00:00.000Z' },
    ])
  })

  it('case 6: a daily time in the repeated hour is one row; the second launch is told so', async () => {
    const launch = (at: string) => ledger.run(['exec', '--task', 'bank', '--cron', '30 1 * * *', '--tz', 'Europe/London', '--conflict-exit-code', '9', '--at', at, '--', 'true'])
    assert.deepEqual([(await launch('2026-10-25T00:30:00Z')).code, (await launch('2026-10-25T01:30:00Z')).code], [0, 9])
    assert.deepEqual(await ledger.sql(`select window_start from task_runs where task_name = 'bank'`), [{ window_start: '2026-10-25T00:30:00.000Z' }])
    assert.deepEqual(await ledger.sql(`select reason, window_start from task_attempts where task_name = 'bank'`), [{ reason: 'done', window_start: '2026-10-25T00:30:00.000Z' }])
  })

  it('case 7: an interval goes on through the repeated hour, as two rows with two keys', async () => {
    assert.deepEqual(await rowsAfter('half-hourly', ['--cron', '*/30 * * * *', '--tz', 'America/New_York'], ['2026-11-01T05:10:00Z', '2026-11-01T06:10:00Z']), [
      { task_key: 'half-hourly:2026-11-01-01:00-04:00', window_start: '2026-11-01T05:00:00.000Z' },
      { task_key: 'half-hourly:2026-11-01-01:00-05:00', window_start: '2026-11-01T06:00:00.000Z' },
    ])
  })

  it('case 9: ten minutes around a clock change start no window twice', async () => {
    const instants = ['00:59:00', '01:00:00', '01:00:01', '01:04:59', '01:05:00', '01:10:00'].map((time) => `2026-03-29T${time}Z`)
    const berlin = (expression: string) => ['--cron', expression, '--tz', 'Europe/Berlin', '--early', '0s']
    assert.deepEqual(await startsAfter('skipped', berlin('30 2 * * *'), instants), ['2026-03-28T01:30:00.000Z', '2026-03-29T01:00:00.000Z'])
    assert.deepEqual(await startsAfter('after', berlin('0 3 * * *'), instants), ['2026-03-28T02:00:00.000Z', '2026-03-29T01:00:00.000Z'])
    assert.deepEqual(await startsAfter('often', berlin('*/5 * * * *'), instants), ['00:55', '01:00', '01:05', '01:10'].map((time) => `2026-03-29T${time}:00.000Z`))
  })

  it('case 11: the day after the clocks went back, noon is noon', async () => {
    const instants = ['2013-10-28T10:59:59Z', '2013-10-28T11:00:00Z']
    assert.deepEqual(await startsAfter('noon', ['--cron', '0 12 * * 1', '--tz', 'Europe/Amsterdam', '--early', '0s'], instants), ['2013-10-21T10:00:00.000Z', '2013-10-28T11:00:00.000Z'])
  })

  it('case 13: the zone decides the day a run is for, and stands in the row', async () => {
    const at = ['2026-07-01T23:00:00Z']
    await rowsAfter('utc-day', ['--cron', '30 23 * * *'], at)
    await rowsAfter('london-day', ['--cron', '30 23 * * *', '--tz', 'Europe/London'], at)
    assert.deepEqual(await ledger.sql(`select task_key, window_start, window_zone from task_runs where task_name like '%-day' order by window_start`), [
      { task_key: 'utc-day:2026-06-30-23:30', window_start: '2026-06-30T23:30:00.000Z', window_zone: 'UTC' },
      { task_key: 'london-day:2026-07-01-23:30', window_start: '2026-07-01T22:30:00.000Z', window_zone: 'Europe/London' },
    ])
  })

  it('case 22: a day that begins with a repeated midnight is one window for everybody', async () => {
    const instants = ['2026-11-01T04:30:00Z', '2026-11-01T05:30:00Z', '2026-11-01T17:00:00Z']
    assert.deepEqual(await startsAfter('havana', ['--every', '1d', '--tz', 'America/Havana'], instants), ['2026-11-01T04:00:00.000Z'])
  })

  it('without --at it is the window of now', async () => {
    const before = new Date()
    await ledger.run(['exec', '--task', 'now', '--every', '1s', '--early', '0s', '--', 'true'])
    const [{ window_start } = {}] = await ledger.sql(`select window_start from task_runs where task_name = 'now'`)
    const start = new Date(String(window_start)).getTime()
    assert.ok(start > before.getTime() - 1000 && start <= Date.now())
  })
})

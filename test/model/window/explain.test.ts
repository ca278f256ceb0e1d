/** The explanation says what the engine does: each window it names is one the engine has, each it denies is not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../../src/model/window/explain.ts'
import type { Schedule } from '../../../src/model/window/schedule.ts'
import { cron, every } from '../../../src/model/window/schedule.ts'

function explained(schedule: Schedule, from = '2026-01-01T00:00:00Z', to = '2027-01-01T00:00:00Z'): string {
  return explain(schedule, new Date(from), new Date(to)).join('\n')
}

test('a fixed time says what becomes of it in the gap and in the fold', () => {
  const text = explained(cron('30 1,2 * * *', 'America/New_York'))
  assert.match(text, /^fixed time \(neither the minute nor the hour field begins with \*\)/)
  assert.match(text, /^clocks: 2026-03-08T07:00:00.000Z forward 1h, 2026-03-08-02:00 to 2026-03-08-03:00 is skipped: 02:30 opens one window at once, 2026-03-08-03:00$/m)
  assert.match(text, /^clocks: 2026-11-01T06:00:00.000Z back 1h, 2026-11-01-01:00 to 2026-11-01-02:00 is shown twice: 01:30 opens a window the first time only, 2026-11-01-01:30-04:00$/m)
})

test('an interval says that the gap opens nothing and the fold two of each', () => {
  const text = explained(cron('*/30 * * * *', 'America/New_York'))
  assert.match(text, /^interval \(/)
  assert.match(text, /is skipped: 02:00, 02:30 opens no window$/m)
  assert.match(text, /01:00, 01:30 opens a window both times, 2026-11-01-01:00-04:00 and 2026-11-01-01:00-05:00, 2026-11-01-01:30-04:00 and/)
})

test('long lists are cut and counted', () => {
  assert.match(explained(cron('* * * * *', 'America/New_York')), /02:00, 02:01, 02:02, … \(60 in all\) opens no window/)
})

test('seconds are shown where the schedule has them', () => {
  assert.match(explained(cron('15 30 2 * * *', 'America/New_York')), /02:30:15 opens one window at once, 2026-03-08-03:00:00/)
})

test('a jump of more than three hours opens nothing and says why', () => {
  assert.match(explained(cron('0 9 * * *', 'Pacific/Apia'), '2011-12-01T00:00:00Z', '2012-01-31T00:00:00Z'), /09:00 opens no window, for the jump is longer than 3 h/)
  assert.match(explained(every('1d', 'Pacific/Apia'), '2011-12-01T00:00:00Z', '2012-01-31T00:00:00Z'), /00:00 opens one window at once, 2011-12-31-00:00/)
})

test('a change that meets none of the times says so', () => {
  assert.equal(explained(cron('0 12 * * *', 'America/New_York')).match(/no window is touched$/gm)?.length, 2)
})

test('elapsed time is not touched by clocks, calendar days are', () => {
  assert.match(explained(every('15m', 'America/New_York')), /^elapsed time: windows are 15m long.*\n.*is skipped: windows go on as before\n.*shown twice: windows go on as before, their labels there carry the offset$/)
  assert.match(explained(every('1d', 'America/Havana')), /^calendar: .*\n.*00:00 opens one window at once, 2026-03-08-01:00\n.*00:00 opens a window the first time only, 2026-11-01-00:00-04:00$/)
})

test('a zone or span without changes says so', () => {
  assert.match(explained(cron('0 12 * * *', 'Asia/Shanghai')), /^clocks: Asia\/Shanghai does not change them from 2026-01-01/m)
})

test('a change at the first instant of the span is in it', () => {
  assert.match(explained(cron('30 2 * * *', 'America/New_York'), '2026-03-08T07:00:00Z', '2026-03-08T08:00:00Z'), /forward 1h/)
})

test('the day rule is told only where there is something to tell', () => {
  assert.doesNotMatch(explained(cron('0 0 * * ?')), /^days/m)
  assert.match(explained(cron('0 0 * * MON')), /^days: those of day-of-week MON$/m)
  assert.match(explained(cron('0 0 1 * ?')), /^days: those of day-of-month 1$/m)
  assert.match(explained(cron('0 0 1 * 1')), /^days: day-of-month 1 OR day-of-week 1, since both fields are restricted$/m)
  assert.match(explained(cron('0 0 1 * */2')), /^days: day-of-month 1 AND day-of-week \*\/2, since one begins with \*/m)
})

test('a span of many years shows its first dozen changes', () => {
  const lines = explained(cron('0 0 * * *', 'America/New_York'), '2000-01-01T00:00:00Z', '2100-01-01T00:00:00Z').split('\n')
  assert.equal(lines.length, 1 + 12 + 1)
  assert.match(lines.at(-1)!, /and more/)
})

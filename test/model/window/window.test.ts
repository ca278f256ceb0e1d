/** Windows at the edges: early launches, half-open spans, clock changes of every size, the ends of the calendar. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Schedule } from '../../../src/model/window/schedule.ts'
import { cron, every } from '../../../src/model/window/schedule.ts'
import { launchWindow, nextStart, windowAt, windowsBetween } from '../../../src/model/window/window.ts'
import { assertRefused } from './refusal.ts'

function labels(schedule: Schedule, from: string, to: string): string[] {
  return Array.from(windowsBetween(schedule, new Date(from), new Date(to)), (window) => window.label)
}

function launched(schedule: Schedule, now: string, earlyMs: number): string {
  return launchWindow(schedule, new Date(now), earlyMs)!.label
}

test('a launch belongs to the next window from exactly `early` before it, not a millisecond sooner', () => {
  const hourly = cron('0 * * * *')
  assert.equal(launched(hourly, '2026-06-01T11:59:58.000Z', 2000), '2026-06-01-12:00')
  assert.equal(launched(hourly, '2026-06-01T11:59:57.999Z', 2000), '2026-06-01-11:00')
  assert.equal(launched(hourly, '2026-06-01T12:00:00.000Z', 2000), '2026-06-01-12:00')
  assert.equal(launched(hourly, '2026-06-01T11:59:59.999Z', 0), '2026-06-01-11:00')
})

test('an early launch before the jump belongs to the window that the jump opens', () => {
  assert.equal(launched(cron('30 2 * * *', 'America/New_York'), '2026-03-08T06:59:59.000Z', 2000), '2026-03-08-03:00')
})

test('a launch on time is not taken for an early one, however short the windows', () => {
  const everySecond = every('1s')
  assert.equal(launched(everySecond, '2026-06-01T12:00:00.000Z', 2000), '2026-06-01-12:00:00')
  assert.equal(launched(everySecond, '2026-06-01T12:00:00.400Z', 2000), '2026-06-01-12:00:00')
  assert.equal(launched(everySecond, '2026-06-01T12:00:00.600Z', 2000), '2026-06-01-12:00:01')
})

test('early must be a number of milliseconds, zero or more', () => {
  for (const early of [-1, NaN]) assertRefused(() => launchWindow(cron('0 * * * *'), new Date(), early), 'early', /zero or more/)
})

test('windows between: the first instant counts, the last does not', () => {
  assert.deepEqual(labels(cron('0 * * * *'), '2026-06-01T10:00:00.000Z', '2026-06-01T12:00:00.000Z'), ['2026-06-01-10:00', '2026-06-01-11:00'])
  assert.deepEqual(labels(cron('0 * * * *'), '2026-06-01T10:00:00.001Z', '2026-06-01T12:00:00.001Z'), ['2026-06-01-11:00', '2026-06-01-12:00'])
  assert.deepEqual(labels(cron('0 * * * *'), '2026-06-01T12:00:00Z', '2026-06-01T12:00:00Z'), [])
  assert.deepEqual(labels(cron('0 * * * *'), '2026-06-01T12:00:00Z', '2026-06-01T10:00:00Z'), [])
})

test('one window ends where the next begins, across both changes of a year', () => {
  const windows = [...windowsBetween(cron('*/20 1-3 * * *', 'America/New_York'), new Date('2026-01-01T00:00:00Z'), new Date('2027-01-01T00:00:00Z'))]
  for (const [index, window] of windows.slice(1).entries()) assert.deepEqual(windows[index]!.end, window.start)
})

test('several skipped times, and a real one at the same instant, make one window', () => {
  const schedule = cron('0,30 2,3 * * *', 'America/New_York')
  assert.deepEqual(labels(schedule, '2026-03-08T06:00:00Z', '2026-03-08T12:00:00Z'), ['2026-03-08-03:00', '2026-03-08-03:30'])
  assert.equal(nextStart(schedule, new Date('2026-03-08T07:00:00.000Z')).toISOString(), '2026-03-08T07:30:00.000Z')
  assert.equal(windowAt(schedule, new Date('2026-03-08T07:29:59.999Z'))!.label, '2026-03-08-03:00')
})

test('a burst of seconds in a gap is one window, since it is a fixed time', () => {
  assert.deepEqual(labels(cron('*/10 30 2 * * *', 'America/New_York'), '2026-03-08T06:00:00Z', '2026-03-09T00:00:00Z'), ['2026-03-08-03:00:00'])
  assert.equal(labels(cron('*/10 30 1 * * *', 'America/New_York'), '2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z').length, 6)
})

test('a jump of exactly three hours is caught up (Casey 2009), one of a day is not (Apia 2011)', () => {
  assert.deepEqual(labels(cron('30 3 * * *', 'Antarctica/Casey'), '2009-10-17T12:00:00Z', '2009-10-18T12:00:00Z'), ['2009-10-18-05:00'])
  assert.deepEqual(labels(cron('30 3 * * *', 'Pacific/Apia'), '2011-12-29T14:00:00Z', '2011-12-30T13:00:00Z'), [])
})

test('a day whose midnight is in a jump of seven hours begins after it all the same (Davis 1969)', () => {
  assert.equal(windowAt(every('1d', 'Antarctica/Davis'), new Date('1969-02-01T03:00:00Z'))!.label, '1969-02-01-07:00')
})

test('a fold across midnight is searched in the order of time, not of the calendar (Newfoundland 2010, 00:01 back to 23:01)', () => {
  assert.deepEqual(labels(cron('0,30 * * * *', 'America/St_Johns'), '2010-11-07T01:00:00Z', '2010-11-07T04:00:01Z'), [
    '2010-11-06-22:30', '2010-11-06-23:00', '2010-11-06-23:30-02:30', '2010-11-07-00:00-02:30', '2010-11-06-23:30-03:30', '2010-11-07-00:00-03:30', '2010-11-07-00:30',
  ])
  assert.equal(windowAt(cron('0 0 * * *', 'America/St_Johns'), new Date('2010-11-07T03:00:00Z'))!.label, '2010-11-07-00:00-02:30')
  assert.equal(windowAt(every('1d', 'America/St_Johns'), new Date('2010-11-07T03:00:00Z'))!.label, '2010-11-07-00:00-02:30')
})

test('of 23 hours shown twice, a fixed time opens one window and an interval two each (Kwajalein 1969)', () => {
  const [from, to] = ['1969-09-29T13:00:00Z', '1969-10-02T00:00:00Z']
  assert.deepEqual(labels(cron('0 9 * * *', 'Pacific/Kwajalein'), from, to), ['1969-09-30-09:00+11:00', '1969-10-01-09:00'])
  assert.deepEqual(labels(cron('0 */9 30 9 *', 'Pacific/Kwajalein'), from, to), [
    '1969-09-30-00:00', '1969-09-30-09:00+11:00', '1969-09-30-18:00+11:00', '1969-09-30-09:00-12:00', '1969-09-30-18:00-12:00',
  ])
})

test('an offset that changes for good moves midnight (Almaty 2024)', () => {
  const yearly = cron('0 0 1 3 *', 'Asia/Almaty')
  assert.equal(windowAt(yearly, new Date('2024-02-29T18:59:59Z'))!.start.toISOString(), '2023-02-28T18:00:00.000Z')
  assert.equal(windowAt(yearly, new Date('2024-02-29T19:00:00Z'))!.start.toISOString(), '2024-02-29T19:00:00.000Z')
})

test('rare dates are found far away, both ways', () => {
  const sundays = cron('0 12 29 2 */7', 'Europe/Berlin')
  assert.equal(windowAt(sundays, new Date('2026-01-01T00:00:00Z'))!.label, '2004-02-29-12:00')
  assert.equal(nextStart(sundays, new Date('2026-01-01T00:00:00Z')).toISOString(), '2032-02-29T11:00:00.000Z')
})

test('the past has a beginning and the future an end', () => {
  assert.equal(windowAt(cron('0 0 1 6 *'), new Date('0001-05-01T00:00:00Z')), null)
  assert.equal(windowAt(every('1y', 'America/New_York'), new Date('0001-01-01T01:00:00Z')), null)
  assert.equal(windowAt(every('80000h'), new Date('0001-01-02T00:00:00Z')), null)
  assert.equal(launchWindow(cron('0 0 1 6 *'), new Date('0001-05-31T23:59:59Z'), 2000)!.label, '0001-06-01-00:00')
  assertRefused(() => nextStart(cron('0 0 1 6 *'), new Date('9999-07-01T00:00:00Z')), 'cron', /no window begins between 9999-07-01T00:00:00.000Z and the year 10000/)
  assertRefused(() => nextStart(every('80000h'), new Date('9999-12-31T00:00:00Z')), 'every', /no window begins/)
  assertRefused(() => nextStart(every('1y'), new Date('9999-12-31T00:00:00Z')), 'every', /no window begins/)
})

test('an instant that is none, or outside the years 1 to 9999, is refused by its name', () => {
  const daily = cron('0 0 * * *')
  const good = new Date('2026-01-01T00:00:00Z')
  for (const bad of [new Date(NaN), new Date(8.64e15), new Date(-8.64e15)]) {
    assertRefused(() => windowAt(daily, bad), 'now', /years 1 to 9999/)
    assertRefused(() => nextStart(daily, bad), 'after', /years 1 to 9999/)
    assertRefused(() => windowsBetween(daily, bad, good).next(), 'from', /years 1 to 9999/)
    assertRefused(() => windowsBetween(daily, good, bad).next(), 'to', /years 1 to 9999/)
  }
})

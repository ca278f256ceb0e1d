/** Schedules by period, and the zones that schedules are accepted in. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { periodStarts } from '../../../src/model/window/calendar-period.ts'
import type { Schedule } from '../../../src/model/window/schedule.ts'
import { cron, every } from '../../../src/model/window/schedule.ts'
import { FIRST_READING, LAST_READING } from '../../../src/model/window/wall-clock.ts'
import { windowAt, windowsBetween } from '../../../src/model/window/window.ts'
import { assertRefused } from './refusal.ts'

function labels(schedule: Schedule, from: string, to: string): string[] {
  return Array.from(windowsBetween(schedule, new Date(from), new Date(to)), (window) => window.label)
}

test('a schedule says what it was made of, in UTC unless told otherwise', () => {
  const [one, other] = [cron(' 0  9 * * * '), every('15m', 'Asia/Kathmandu')]
  assert.deepEqual([one.kind, one.source, one.zone], ['cron', ' 0  9 * * * ', 'UTC'])
  assert.deepEqual([other.kind, other.source, other.zone], ['every', '15m', 'Asia/Kathmandu'])
})

test('hours are elapsed time, days are the calendar: 24h and 1d differ on the day of a change', () => {
  const [from, to] = ['2026-03-08T00:00:00Z', '2026-03-10T12:00:00Z']
  assert.deepEqual(labels(every('24h', 'America/New_York'), from, to), ['2026-03-07-19:00', '2026-03-08-20:00', '2026-03-09-20:00'])
  assert.deepEqual(labels(every('1d', 'America/New_York'), from, to), ['2026-03-08-00:00', '2026-03-09-00:00', '2026-03-10-00:00'])
})

test('elapsed windows count from the Unix epoch, before it too', () => {
  assert.equal(windowAt(every('7h'), new Date('1970-01-01T06:59:59.999Z'))!.label, '1970-01-01-00:00')
  assert.equal(windowAt(every('7h'), new Date('1969-12-31T23:59:59.999Z'))!.label, '1969-12-31-17:00')
  assert.equal(windowAt(every('1.5h'), new Date('1970-01-01T03:10:00Z'))!.label, '1970-01-01-03:00')
})

test('labels have seconds exactly where a period is not whole minutes', () => {
  assert.equal(windowAt(every('90s'), new Date('2026-01-01T00:02:00Z'))!.label, '2026-01-01-00:01:30')
  assert.equal(windowAt(every('120s'), new Date('2026-01-01T00:03:00Z'))!.label, '2026-01-01-00:02')
})

test('calendar periods begin in the years 1 to 9999', () => {
  const { firstAtOrAfter, lastAtOrBefore } = periodStarts({ months: 12 })
  assert.deepEqual([lastAtOrBefore(FIRST_READING), lastAtOrBefore(FIRST_READING - 1)], [FIRST_READING, null])
  assert.equal(firstAtOrAfter(LAST_READING), null)
})

const CALENDAR: readonly (readonly [string, readonly string[]])[] = [
  ['1mo', ['2026-05-01-00:00', '2026-06-01-00:00', '2026-07-01-00:00']],
  ['2mo', ['2026-05-01-00:00', '2026-07-01-00:00', '2026-09-01-00:00']],
  ['3mo', ['2026-04-01-00:00', '2026-07-01-00:00', '2026-10-01-00:00']],
  ['4mo', ['2026-05-01-00:00', '2026-09-01-00:00', '2027-01-01-00:00']],
  ['6mo', ['2026-01-01-00:00', '2026-07-01-00:00', '2027-01-01-00:00']],
  ['12mo', ['2026-01-01-00:00', '2027-01-01-00:00', '2028-01-01-00:00']],
  ['1y', ['2026-01-01-00:00', '2027-01-01-00:00', '2028-01-01-00:00']],
  ['1w', ['2026-05-11-00:00', '2026-05-18-00:00', '2026-05-25-00:00']],
]
for (const [period, expected] of CALENDAR) {
  test(`${period} begins with its unit of the calendar`, () => {
    const schedule = every(period, 'Asia/Shanghai')
    const first = windowAt(schedule, new Date('2026-05-15T00:00:00Z'))!
    assert.deepEqual([first.label, ...labels(schedule, first.end.toISOString(), '2029-01-01T00:00:00Z')].slice(0, 3), expected)
  })
}

for (const period of ['', '15', 'm', '15 m', '15M', '250ms', '-5m', '1e3s', 'P1D', '1month']) {
  test(`period ${JSON.stringify(period)} is refused, showing how one is written`, () => {
    assertRefused(() => every(period), 'every', /must be a time such as 30s.*3mo/)
  })
}
for (const period of ['2d', '7d', '0d', '1.5d', '01d', '2w', '5mo', '0mo', '03mo', '24mo', '2y']) {
  test(`calendar period ${period} is refused, listing those that have a beginning`, () => {
    assertRefused(() => every(period), 'every', new RegExp(`by the calendar must be 1d, 1w.*got "${period}"`))
  })
}
test('a period of no time, of parts of a second or of more than ten years is refused', () => {
  assertRefused(() => every('0m'), 'every', /more than zero/)
  assertRefused(() => every('1.5s'), 'every', /whole seconds/)
  assertRefused(() => every('99999h'), 'every', /ten years/)
})

for (const zone of ['UTC', 'Europe/London', 'America/Argentina/Buenos_Aires', 'America/Port-au-Prince', 'Etc/GMT+5', 'Asia/Calcutta']) {
  test(`zone ${zone} is accepted as written`, () => assert.equal(cron('0 0 * * *', zone).zone, zone))
}
for (const zone of ['', ' UTC', 'utc', '+05:00', '-0500', 'GMT+5', 'Z', 'local', 'BST', 'EST', 'america/new_york', 'Europe/London\n', 'Europe/', '../etc/passwd']) {
  test(`zone ${JSON.stringify(zone)} is refused: neither UTC nor a place`, () => {
    assertRefused(() => cron('0 0 * * *', zone), 'tz', /must be UTC or an IANA name/)
    assertRefused(() => every('1d', zone), 'tz', /must be UTC or an IANA name/)
  })
}
test('a zone that is written well but does not exist is refused by name', () => {
  assertRefused(() => cron('0 0 * * *', 'Mars/Phobos'), 'tz', /no time zone is called "Mars\/Phobos"/)
  assertRefused(() => every('15m', 'Mars/Phobos'), 'tz', /no time zone is called "Mars\/Phobos"/)
})

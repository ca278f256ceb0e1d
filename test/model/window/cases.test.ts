/** Failures that other schedulers' users reported; each test states the value that would have been right. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explain } from '../../../src/model/window/explain.ts'
import type { Schedule } from '../../../src/model/window/schedule.ts'
import { cron, every } from '../../../src/model/window/schedule.ts'
import { launchWindow, nextStart, windowAt, windowsBetween } from '../../../src/model/window/window.ts'
import { assertRefused } from './refusal.ts'
import { milliseconds } from './stopwatch.ts'

function startAt(schedule: Schedule, now: string): string {
  return windowAt(schedule, new Date(now))!.start.toISOString()
}

function labelAt(schedule: Schedule, now: string): string {
  return windowAt(schedule, new Date(now))!.label
}

function startsBetween(schedule: Schedule, from: string, to: string): string[] {
  return Array.from(windowsBetween(schedule, new Date(from), new Date(to)), (window) => window.start.toISOString())
}

test('case 1: looking back over a midnight that does not exist finds the first instant of the day', () => {
  const saoPaulo = cron('0 0 * * *', 'America/Sao_Paulo')
  const havana = cron('0 0 * * *', 'America/Havana')
  assert.equal(startAt(saoPaulo, '2018-11-04T03:00:00Z'), '2018-11-04T03:00:00.000Z')
  assert.equal(labelAt(saoPaulo, '2018-11-04T03:00:00Z'), '2018-11-04-01:00')
  assert.equal(startAt(havana, '2026-03-08T05:00:00Z'), '2026-03-08T05:00:00.000Z')
  assert.equal(labelAt(havana, '2026-03-08T05:00:00Z'), '2026-03-08-01:00')
})

test('case 1: no day of 2018 in Sao Paulo makes a search throw or take 50 ms', () => {
  const daily = cron('0 0 * * *', 'America/Sao_Paulo')
  const labels = new Set<string>()
  for (let now = Date.UTC(2018, 0, 1, 12); now < Date.UTC(2019, 0, 1); now += 86_400_000) {
    assert.ok(milliseconds(() => labels.add(windowAt(daily, new Date(now))!.label)) < 50)
  }
  assert.equal(labels.size, 365)
})

test('case 2: shortly after the jump, the look-back finds the same window that the look-ahead named', () => {
  const daily = cron('0 2 * * *', 'America/New_York')
  assert.equal(startAt(daily, '2020-03-08T07:01:00Z'), '2020-03-08T07:00:00.000Z')
  assert.equal(nextStart(daily, new Date('2020-03-08T06:59:59.999Z')).toISOString(), '2020-03-08T07:00:00.000Z')
})

test('case 3: a listing crosses the gap and goes on', () => {
  const starts = startsBetween(cron('0 5 * * 7', 'Europe/Rome'), '2025-03-29T00:00:00Z', '2025-04-07T00:00:00Z')
  assert.deepEqual(starts, ['2025-03-30T03:00:00.000Z', '2025-04-06T03:00:00.000Z'])
})

test('case 4: a job in the changed hour is neither lost in spring nor given a second window in autumn', () => {
  assert.equal(startAt(cron('30 2 * * *', 'America/New_York'), '2026-03-08T07:00:00Z'), '2026-03-08T07:00:00.000Z')
  assert.equal(startAt(cron('30 1 * * *', 'America/New_York'), '2026-11-01T06:30:00Z'), '2026-11-01T05:30:00.000Z')
})

test('case 5: a payment job at 02:00 has one window on each day of the change', () => {
  const starts = startsBetween(cron('0 2 * * *', 'America/Los_Angeles'), '2025-03-08T12:00:00Z', '2025-03-10T12:00:00Z')
  assert.deepEqual(starts, ['2025-03-09T10:00:00.000Z', '2025-03-10T09:00:00.000Z'])
})

test('case 6: both passes through the repeated hour name one window', () => {
  const daily = cron('30 1 * * *', 'Europe/London')
  const [first, second] = ['2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z'].map((now) => windowAt(daily, new Date(now)))
  assert.equal(first!.start.toISOString(), '2026-10-25T00:30:00.000Z')
  assert.deepEqual(second, first)
})

test('case 7: an interval job has windows in both passes, with labels of their own', () => {
  const halfHourly = cron('*/30 * * * *', 'America/New_York')
  assert.equal(startAt(halfHourly, '2026-11-01T05:10:00Z'), '2026-11-01T05:00:00.000Z')
  assert.equal(startAt(halfHourly, '2026-11-01T06:10:00Z'), '2026-11-01T06:00:00.000Z')
  assert.equal(labelAt(halfHourly, '2026-11-01T05:10:00Z'), '2026-11-01-01:00-04:00')
  assert.equal(labelAt(halfHourly, '2026-11-01T06:10:00Z'), '2026-11-01-01:00-05:00')
})

for (const expression of ['30 2 * * *', '0 3 * * *', '*/5 * * * *']) {
  test(`case 9: a loop over ${expression} at the instant of the change always moves on`, () => {
    const schedule = cron(expression, 'Europe/Berlin')
    const claimed: string[] = []
    for (let now = Date.parse('2026-03-29T01:00:00Z'); now < Date.parse('2026-03-29T01:10:00Z');) {
      claimed.push(windowAt(schedule, new Date(now))!.label)
      const next = nextStart(schedule, new Date(now)).getTime()
      assert.ok(next > now)
      now = next
    }
    assert.equal(new Set(claimed).size, claimed.length)
  })
}

test('case 11: after the end of summer time a noon job is not due at eleven', () => {
  const mondays = cron('0 12 * * 1', 'Europe/Amsterdam')
  assert.equal(startAt(mondays, '2013-10-28T10:59:59Z'), '2013-10-21T10:00:00.000Z')
  assert.equal(startAt(mondays, '2013-10-28T11:00:00Z'), '2013-10-28T11:00:00.000Z')
})

test('case 13: the zone decides which business day a window near midnight belongs to, and goes with the window', () => {
  const now = new Date('2026-07-01T23:00:00Z')
  const [utc, london] = [windowAt(cron('30 23 * * *', 'UTC'), now)!, windowAt(cron('30 23 * * *', 'Europe/London'), now)!]
  assert.deepEqual([utc.start.toISOString(), utc.label, utc.zone], ['2026-06-30T23:30:00.000Z', '2026-06-30-23:30', 'UTC'])
  assert.deepEqual([london.start.toISOString(), london.label, london.zone], ['2026-07-01T22:30:00.000Z', '2026-07-01-23:30', 'Europe/London'])
})

test('case 14: two restricted day fields are an OR, a stepped star makes an AND, and the explanation says which', () => {
  const [either, both] = [cron('0 0 13 * 5'), cron('0 0 */2 * 1')]
  assert.equal(startAt(either, '2026-10-14T12:00:00Z'), '2026-10-13T00:00:00.000Z')
  assert.equal(startAt(both, '2026-10-08T00:00:00Z'), '2026-10-05T00:00:00.000Z')
  const [from, to] = [new Date('2026-10-01T00:00:00Z'), new Date('2026-11-01T00:00:00Z')]
  assert.match(explain(either, from, to).join('\n'), /^days: day-of-month 13 OR day-of-week 5/m)
  assert.match(explain(both, from, to).join('\n'), /^days: day-of-month \*\/2 AND day-of-week 1.*\*\/2 counts as a star/m)
})

for (const days of ['7', '0', 'SUN', '5-7']) {
  test(`case 15: day-of-week ${days} has Sunday in it`, () => {
    assert.equal(startAt(cron(`0 0 * * ${days}`), '2026-09-21T00:00:00Z'), '2026-09-20T00:00:00.000Z')
  })
}

test('case 16: the next start of a monthly schedule is a month away, not clamped', () => {
  assert.equal(nextStart(cron('0 0 1 * *'), new Date('2026-01-01T00:00:01Z')).toISOString(), '2026-02-01T00:00:00.000Z')
})

test('case 18: a launch after an outage belongs to the window that was missed, and its lateness is known', () => {
  const now = new Date('2026-09-20T10:05:00Z')
  const window = launchWindow(cron('0 18 * * *', 'Asia/Shanghai'), now, 2000)!
  assert.equal(window.label, '2026-09-20-18:00')
  assert.equal(now.getTime() - window.start.getTime(), 300_000)
})

test('case 19: a timer that wakes 2 ms early gets the window it was set for, not the last one again', () => {
  const window = launchWindow(cron('0 * * * *'), new Date('2026-06-01T11:59:59.998Z'), 2000)!
  assert.equal(window.start.toISOString(), '2026-06-01T12:00:00.000Z')
})

for (const schedule of [cron('0 0 * * *', 'America/Havana'), every('1d', 'America/Havana')]) {
  test(`case 22: all callers agree where the day with two midnights begins, by ${schedule.source}`, () => {
    for (const now of ['2026-11-01T04:30:00Z', '2026-11-01T05:30:00Z', '2026-11-01T17:00:00Z']) {
      assert.equal(startAt(schedule, now), '2026-11-01T04:00:00.000Z')
    }
  })
}

test('case 23: changes of 30 minutes and offsets of 45 are like any other', () => {
  assert.equal(labelAt(cron('15 2 * * *', 'Australia/Lord_Howe'), '2026-10-03T15:30:00Z'), '2026-10-04-02:30')
  assert.equal(startAt(cron('15 2 * * *', 'Australia/Lord_Howe'), '2026-10-03T15:30:00Z'), '2026-10-03T15:30:00.000Z')
  assert.equal(startAt(cron('*/15 * * * *', 'Australia/Lord_Howe'), '2026-04-04T15:16:00Z'), '2026-04-04T15:15:00.000Z')
  assert.equal(labelAt(cron('0 3 * * *', 'Pacific/Chatham'), '2026-09-26T14:00:00Z'), '2026-09-27-03:45')
  assert.equal(startAt(cron('0 6 * * *', 'Asia/Kathmandu'), '2026-09-20T00:15:00Z'), '2026-09-20T00:15:00.000Z')
})

test('case 24: a calendar day that never existed opens no window and is no obstacle', () => {
  assert.equal(startAt(cron('0 9 * * *', 'Pacific/Apia'), '2011-12-30T12:00:00Z'), '2011-12-29T19:00:00.000Z')
  assert.equal(startAt(cron('0 0 30 12 *', 'Pacific/Apia'), '2012-01-05T00:00:00Z'), '2010-12-30T10:00:00.000Z')
  assert.equal(labelAt(every('1d', 'Pacific/Apia'), '2011-12-30T10:00:00Z'), '2011-12-31-00:00')
})

test('case 25: the label of a week carries the calendar year, also where the ISO week year differs', () => {
  const weekly = every('1w', 'Europe/Berlin')
  assert.equal(startAt(weekly, '2026-12-31T12:00:00Z'), '2026-12-27T23:00:00.000Z')
  assert.equal(labelAt(weekly, '2027-01-01T12:00:00Z'), '2026-12-28-00:00')
  assert.equal(labelAt(every('1w'), '2024-12-31T00:00:00Z'), '2024-12-30-00:00')
})

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ['', /is empty/], ['H H * * *', /minute "H"/], ['0 0 30 2 *', /day-of-month "30".*month "2"/], ['60 * * * *', /minute "60"/],
  ['*/0 * * * *', /minute "\*\/0"/], ['5-1 * * * *', /minute "5-1"/], ['0 0 * * 8', /day-of-week "8"/],
]
for (const [expression, pattern] of REFUSED) {
  test(`case 26: ${JSON.stringify(expression)} is refused, naming the field`, () => assertRefused(() => cron(expression), 'cron', pattern))
}

test('case 27: leap days and month ends neither drift nor get lost', () => {
  assert.equal(startAt(cron('0 0 29 2 *'), '2027-03-01T00:00:00Z'), '2024-02-29T00:00:00.000Z')
  assert.equal(startAt(cron('0 0 29 2 *'), '2103-06-01T00:00:00Z'), '2096-02-29T00:00:00.000Z')
  assert.equal(startAt(cron('0 0 31 * *'), '2026-07-01T00:00:00Z'), '2026-05-31T00:00:00.000Z')
  assert.equal(startAt(cron('0 0 L * *'), '2028-03-01T00:00:00Z'), '2028-02-29T00:00:00.000Z')
})

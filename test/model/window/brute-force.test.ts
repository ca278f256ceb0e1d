/** The engine against a minute-by-minute reading of the rules, over random entries and random days around clock changes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isLedgerError } from '../../../src/model/errors.ts'
import type { Schedule } from '../../../src/model/window/schedule.ts'
import { cron } from '../../../src/model/window/schedule.ts'
import { nextStart, windowAt, windowsBetween } from '../../../src/model/window/window.ts'
import { dueInstants } from './brute-force.ts'
import type { CronEntry } from './random-schedules.ts'
import { cronEntries, places } from './random-schedules.ts'

const DAY = 86_400_000

/** Some random day fields never come; those are refused, which cron-expression.test.ts looks into. */
function scheduleOf(entry: CronEntry, zone: string): Schedule {
  try {
    return cron(entry.expression, zone)
  } catch (error) {
    fc.pre(!(isLedgerError(error) && error.message.includes('no such day ever comes')))
    throw error
  }
}

test('forwards, the windows of three days are those that the rules give minute by minute', () => {
  fc.assert(fc.property(cronEntries, places, (entry, { zone, at }) => {
    const schedule = scheduleOf(entry, zone)
    const [from, to] = [at - DAY, at + 2 * DAY]
    const starts = Array.from(windowsBetween(schedule, new Date(from), new Date(to)), (window) => window.start.getTime())
    assert.deepEqual(starts, dueInstants(entry, zone, from, to))
  }), { numRuns: 150 })
})

test('backwards and onwards from any instant, the window and the next start are those of the rules', () => {
  fc.assert(fc.property(cronEntries, places, fc.array(fc.integer({ min: -DAY, max: DAY }), { minLength: 5, maxLength: 5 }), (entry, { zone, at }, shifts) => {
    const schedule = scheduleOf(entry, zone)
    const due = dueInstants(entry, zone, at - 2 * DAY, at + 2 * DAY)
    for (const now of shifts.map((shift) => at + shift)) {
      const [last, next] = [due.findLast((instant) => instant <= now), due.find((instant) => instant > now)]
      if (last === undefined) assert.ok(windowAt(schedule, new Date(now))!.start.getTime() < at - 2 * DAY)
      else assert.equal(windowAt(schedule, new Date(now))!.start.getTime(), last)
      if (next === undefined) assert.ok(nextStart(schedule, new Date(now)).getTime() >= at + 2 * DAY)
      else assert.equal(nextStart(schedule, new Date(now)).getTime(), next)
    }
  }), { numRuns: 100 })
})

test('the minute-by-minute reading agrees with the two rows a person would try first', () => {
  const entry = (minute: number, hour: number): CronEntry => ({ expression: '', seconds: [0], minutes: new Set([minute]), hours: new Set([hour]), interval: false, day: () => true })
  assert.deepEqual(dueInstants(entry(30, 2), 'America/New_York', Date.parse('2026-03-08T00:00Z'), Date.parse('2026-03-09T00:00Z')), [Date.parse('2026-03-08T07:00Z')])
  assert.deepEqual(dueInstants(entry(30, 1), 'America/New_York', Date.parse('2026-11-01T00:00Z'), Date.parse('2026-11-02T00:00Z')), [Date.parse('2026-11-01T05:30Z')])
})

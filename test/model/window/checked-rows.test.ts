/** Every checked row: the window of an instant, and its label. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextStart, windowAt } from '../../../src/model/window/window.ts'
import { answer, checkedRows, expectation, scheduleOf } from './checked-rows.ts'
import { assertRefused } from './refusal.ts'

test('windows.json holds 94 rows', () => assert.equal(checkedRows.length, 94))

for (const row of checkedRows) {
  const schedule = `${row.cron ?? row.period} ${row.tz}`
  if (row.window_start === null) {
    test(`${row.id}: ${schedule} never comes, so it is refused, naming the field`, () => {
      assertRefused(() => scheduleOf(row), 'cron', /day-of-month "3[01]": no such day ever comes/)
    })
    continue
  }
  test(`${row.id}: ${schedule} at ${row.now}: ${row.note}`, () => {
    assert.deepEqual(answer(row), expectation(row))
  })
  test(`${row.id}: the window of ${schedule} contains the instant, and begins its own window`, () => {
    const [made, now] = [scheduleOf(row), new Date(row.now)]
    const window = windowAt(made, now)!
    assert.ok(window.start <= now && now < window.end)
    assert.deepEqual(windowAt(made, window.start), window)
    assert.deepEqual(nextStart(made, window.start), window.end)
    assert.equal(window.zone, row.tz)
  })
}

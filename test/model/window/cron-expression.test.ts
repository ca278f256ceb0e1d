/** Which cron expressions are accepted, what they mean, and how the others are refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCron } from '../../../src/model/window/cron-expression.ts'
import { parseField } from '../../../src/model/window/cron-field.ts'
import { writeReading } from '../../../src/model/window/wall-clock.ts'
import { assertRefused } from './refusal.ts'

/** The first `count` readings of an expression from 1 January 2026 (a Thursday). */
function readings(expression: string, count: number, from = Date.UTC(2026, 0, 1)): string[] {
  const { firstAtOrAfter, seconds } = parseCron(expression)
  const found: string[] = []
  for (let reading = firstAtOrAfter(from); reading !== null && found.length < count; reading = firstAtOrAfter(reading + 1)) {
    found.push(writeReading(reading, seconds))
  }
  return found
}

/** Days of January 2026 (or of another month) that an expression at midnight means. */
function days(fields: string, month = 1): number[] {
  return readings(`0 0 ${fields}`, 31, Date.UTC(2026, month - 1, 1)).filter((text) => Number(text.slice(5, 7)) === month && text.startsWith('2026')).map((text) => Number(text.slice(8, 10)))
}

const SAME: readonly (readonly [string, string, string])[] = [
  ['names are read in any case', '0 0 * jan-MAR sun,Wed', '0 0 * 1-3 0,3'],
  ['7 is Sunday', '0 0 * * 7', '0 0 * * 0'],
  ['a week may end with Sunday', '0 0 * * FRI-SUN', '0 0 * * 5-7'],
  ['a range from SUN begins with it', '0 0 * * SUN-TUE', '0 0 * * 0-2'],
  ['SUN-SUN is Sunday', '0 0 * * SUN-SUN', '0 0 * * 0'],
  ['white space of any kind and amount divides fields', ' 5\t4  *\u00a0* * \n', '5 4 * * *'],
  ['leading zeros are zeros', '05 04 01 01 *', '5 4 1 1 *'],
  ['a step runs from the first value to the end', '5/20 * * * *', '5,25,45 * * * *'],
  ['a step of a range stays in it', '10-30/10 * * * *', '10,20,30 * * * *'],
  ['a step of the whole field strikes once', '*/60 */24 * * *', '0 0 * * *'],
  ['lists may overlap and be out of order', '30,0-10/5,5 * * * *', '0,5,10,30 * * * *'],
  ['a value given twice counts once', '0,30 3,3 * * *', '0,30 3 * * *'],
  ['a question mark is a star', '0 0 ? * 1', '0 0 * * 1'],
  ['@yearly is New Year', '@yearly', '0 0 1 1 *'],
  ['@annually is @yearly', '@annually', '0 0 1 1 *'],
  ['@monthly is the 1st', '@monthly', '0 0 1 * *'],
  ['@weekly is Sunday', '@weekly', '0 0 * * 0'],
  ['@daily is midnight', '@daily', '0 0 * * *'],
  ['@midnight is @daily', '@midnight', '0 0 * * *'],
  ['@hourly is minute 0, and nicknames are read in any case', '@Hourly', '0 * * * *'],
  ['six fields have the second first', '0 */5 * * * *', '*/5 * * * *'],
]
for (const [promise, one, other] of SAME) {
  test(`${promise}: ${JSON.stringify(one)} is ${other}`, () => {
    const strip = (text: string): string => text.slice(0, 16)
    assert.deepEqual(readings(one, 40).map(strip), readings(other, 40).map(strip))
  })
}

test('the values of a field are in order, each once', () => {
  assert.deepEqual(parseField({ name: 'hour', min: 0, max: 23, cycle: 24 }, '9,3-5,4,9'), [3, 4, 5, 9])
})

test('seconds strike within their minute', () => {
  assert.deepEqual(readings('15,45 30 2 * * *', 3), ['2026-01-01-02:30:15', '2026-01-01-02:30:45', '2026-01-02-02:30:15'])
  assert.equal(writeReading(parseCron('15,45 30 2 * * *').lastAtOrBefore(Date.UTC(2026, 0, 2, 2, 30, 44, 999))!, true), '2026-01-02-02:30:15')
  assert.equal(writeReading(parseCron('15,45 30 2 * * *').lastAtOrBefore(Date.UTC(2026, 0, 2, 2, 30, 14, 999))!, true), '2026-01-01-02:30:45')
})

test('L is the last day, LW the last weekday', () => {
  assert.deepEqual([days('L * *', 2), days('l * *', 4)], [[28], [30]])
  assert.deepEqual([days('LW * *', 1), days('lw * *', 2), days('LW * *', 5)], [[30], [27], [29]])
})

test('nW is the nearest weekday and never leaves its month', () => {
  assert.deepEqual(days('15W * *', 8), [14], 'Saturday the 15th: Friday')
  assert.deepEqual(days('15w * *', 3), [16], 'Sunday the 15th: Monday')
  assert.deepEqual(days('15W * *', 7), [15], 'Wednesday the 15th')
  assert.deepEqual(days('1W * *', 8), [3], 'Saturday the 1st: Monday the 3rd')
  assert.deepEqual(days('31W * *', 5), [29], 'Sunday the 31st: Friday the 29th')
  assert.deepEqual(days('29W * *', 2), [], 'no 29th, which would be a Sunday: no weekday near it')
})

test('n#k is the k-th, nL the last such day of the week', () => {
  assert.deepEqual(days('* * 5#2'), [9])
  assert.deepEqual(days('* * SUN#1'), [4])
  assert.deepEqual(days('* * 7#1'), [4])
  assert.deepEqual(days('* * 4#5'), [29])
  assert.deepEqual(days('* * 4#5', 2), [], 'February has no fifth Thursday')
  assert.deepEqual(days('* * 5L', 11), [27])
  assert.deepEqual(days('* * sunL'), [25])
  assert.deepEqual(days('* * 7L'), [25])
  assert.deepEqual(days('L,1,15W * *'), [1, 15, 31])
})

test('day fields: OR when both are restricted, AND when one begins with a star', () => {
  assert.deepEqual(days('13 * 5'), [2, 9, 13, 16, 23, 30])
  assert.deepEqual(days('*/10 * 4'), [1])
  assert.deepEqual(days('1-15 * */3'), [3, 4, 7, 10, 11, 14])
  assert.deepEqual(days('1,*/10 * 4'), [1, 8, 11, 15, 21, 22, 29, 31], 'a star later in the list does not count')
  assert.deepEqual(days('? * 1'), [5, 12, 19, 26])
})

test('an entry is of the interval kind exactly when its minute or hour field begins with a star', () => {
  const interval = ['* * * * *', '*/15 3 * * *', '5 * * * *', '5 */2 * * *', '*,5 3 * * *', '@hourly', '0 * 3 * * *', '0 5 * * * *']
  const fixed = ['5 3 * * *', '0-59 0-23 * * *', '0,*/15 3 * * *', '5 3 */2 * *', '@daily', '*/10 0 9 * * *', '* 0 9 * * *']
  for (const expression of interval) assert.ok(parseCron(expression).interval, expression)
  for (const expression of fixed) assert.ok(!parseCron(expression).interval, expression)
})

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ['   ', /is empty/],
  ['* * * *', /needs 5 fields.*has 4/],
  ['0 0 0 1 1 ? 2026', /needs 5 fields.*has 7/],
  ['@reboot', /"@reboot" names no time/],
  ['@every 5m', /"@every 5m" is not one of @yearly/],
  ['60 * * * * *', /second "60": must be 0 to 59/],
  ['-1 * * * *', /minute "-1"/],
  ['1.5 * * * *', /minute "1.5"/],
  ['1,,2 * * * *', /minute ""/],
  ['5- * * * *', /minute "5-"/],
  ['*5 * * * *', /minute "\*5"/],
  ['? * * * *', /minute "\?"/],
  ['H/15 * * * *', /minute "H\/15": H differs/],
  ['005 * * * *', /minute "005"/],
  ['*/61 * * * *', /minute "\*\/61": the step must be 1 to 60/],
  ['5/0 * * * *', /minute "5\/0": the step/],
  ['*/x * * * *', /minute "\*\/x": the step/],
  ['MON * * * *', /minute "MON"/],
  ['0 24 * * *', /hour "24": must be 0 to 23/],
  ['0 0 0 * *', /day-of-month "0": must be 1 to 31/],
  ['0 0 32W * *', /day-of-month "32W": must be 1 to 31/],
  ['0 0 L-3 * *', /day-of-month "L-3"/],
  ['0 0 W * *', /day-of-month "W"/],
  ['0 0 1,? * *', /day-of-month "\?"/],
  ['0 0 * 0 *', /month "0": must be 1 to 12 or JAN to DEC/],
  ['0 0 * MAI *', /month "MAI"/],
  ['0 0 * * */8', /day-of-week "\*\/8": the step must be 1 to 7/],
  ['0 0 * * L', /day-of-week "L": must be 0 to 7/],
  ['0 0 * * 5#6', /day-of-week "5#6": the number after # must be 1 to 5/],
  ['0 0 * * 5#0', /day-of-week "5#0"/],
  ['0 0 * * 8L', /day-of-week "8L"/],
  ['0 0 * * 6-SUN,5-0', /day-of-week "5-0": the range runs backwards/],
  ['0 0 31 4,6,9,11 *', /day-of-month "31": no such day ever comes with month "4,6,9,11"/],
  ['0 0 30,31 FEB ?', /day-of-month "30,31".*month "FEB"/],
  ['0 0 */31 * 1#2', /day-of-month "\*\/31".*day-of-week "1#2"/],
]
for (const [expression, pattern] of REFUSED) {
  test(`${JSON.stringify(expression)} is refused in one line that names the field`, () => assertRefused(() => parseCron(expression), 'cron', pattern))
}

test('what is quoted in a refusal is short, and control characters in it are escaped', () => {
  assertRefused(() => parseCron(`${'9'.repeat(500)} * * * *`), 'cron', /minute "9{40}": /)
  assertRefused(() => parseCron('\u001b[31m * * * *'), 'cron', /minute "\\u001b\[31m"/)
})

test('dates so rare that they come once in 28 or 40 years are accepted', () => {
  assert.deepEqual(readings('0 0 29 2 */7', 2), ['2032-02-29-00:00', '2060-02-29-00:00'])
  assert.deepEqual(readings('0 0 * 2 1#5', 2), ['2044-02-29-00:00', '2072-02-29-00:00'])
  assert.deepEqual(readings('0 0 29 2 */7', 2, Date.UTC(2088, 2, 1)), ['2128-02-29-00:00', '2156-02-29-00:00'])
})

test('readings end with the year 9999 and begin with the year 1', () => {
  const { firstAtOrAfter, lastAtOrBefore } = parseCron('0 0 1 6 *')
  assert.equal(firstAtOrAfter(Date.UTC(9999, 5, 2)), null)
  assert.equal(lastAtOrBefore(new Date(0).setUTCFullYear(1, 4, 31)), null)
  assert.equal(writeReading(lastAtOrBefore(new Date(0).setUTCFullYear(99, 11, 31))!, false), '0099-06-01-00:00')
})

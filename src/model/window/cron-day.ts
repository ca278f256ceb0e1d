/** The day fields of a cron expression, its month with them: which dates it means. */
import type { CalendarDate, Reading } from './wall-clock.ts'
import { DAY_MS, FIRST_READING, LAST_READING, dateOf, daysInMonth, midnightOf } from './wall-clock.ts'
import type { FieldSpec } from './cron-field.ts'
import { fieldError, parseField, parseItem, parseValue } from './cron-field.ts'

/**
 * How the two day fields combine, by Vixie's rule: a date must match `both` when one of them begins with `*` (a
 * stepped star counts), and `either` of them when both are restricted.
 */
export type DayRule = 'both' | 'either'

export interface CronDays {
  readonly rule: DayRule
  /** The two fields as written. */
  readonly dayOfMonth: string
  readonly dayOfWeek: string
  readonly months: ReadonlySet<number>
  /** Whether the day fields mean this date; the month is asked separately, so that a search can skip it whole. */
  readonly matches: DateTest
}

type DateTest = (date: CalendarDate) => boolean

const DAY_OF_MONTH: FieldSpec = { name: 'day-of-month', min: 1, max: 31, cycle: 31 }
const MONTH: FieldSpec = {
  name: 'month', min: 1, max: 12, cycle: 12,
  names: ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'],
}
/** Sunday is both ends of the week. */
const DAY_OF_WEEK: FieldSpec = { name: 'day-of-week', min: 0, max: 7, cycle: 7, names: ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'] }

/** @throws INVALID_OPTION naming the field and the value, also when no such date ever comes. */
export function parseDays(dayOfMonth: string, month: string, dayOfWeek: string): CronDays {
  const rule = /^[*?]/.test(dayOfMonth) || /^[*?]/.test(dayOfWeek) ? 'both' : 'either'
  const inMonth = parseList(dayOfMonth, parseDayOfMonth)
  const months = new Set(parseField(MONTH, month))
  const inWeek = parseList(dayOfWeek, parseDayOfWeek)
  const matches: DateTest = rule === 'both' ? (date) => inMonth(date) && inWeek(date) : (date) => inMonth(date) || inWeek(date)
  const days: CronDays = { rule, dayOfMonth, dayOfWeek, months, matches }
  refuseImpossible(days, month)
  return days
}

function parseList(text: string, parse: (item: string) => DateTest): DateTest {
  // Quartz has ? for "any day"; alone it is a star, anywhere else an error.
  const tests = (text === '?' ? '*' : text).split(',').map(parse)
  return (date) => tests.some((test) => test(date))
}

/** Numbers and ranges, `L` the last day, `15W` the weekday nearest to the 15th in its month, `LW` the last weekday. */
function parseDayOfMonth(item: string): DateTest {
  if (/^L$/i.test(item)) return (date) => date.day === lastDayOf(date)
  if (/^LW$/i.test(item)) return (date) => date.day === nearestWeekday(date, lastDayOf(date))
  const nearest = /^(\w+)W$/i.exec(item)
  if (nearest) {
    const day = parseValue(DAY_OF_MONTH, item, nearest[1]!)
    return (date) => day <= lastDayOf(date) && date.day === nearestWeekday(date, day)
  }
  const days = new Set(parseItem(DAY_OF_MONTH, item))
  return (date) => days.has(date.day)
}

/** Numbers, names and ranges, `5#2` the second Friday, `5L` the last. */
function parseDayOfWeek(item: string): DateTest {
  const nth = /^(\w+)#(\w+)$/.exec(item)
  if (nth) {
    const weekday = parseValue(DAY_OF_WEEK, item, nth[1]!) % 7
    if (!/^[1-5]$/.test(nth[2]!)) throw fieldError(DAY_OF_WEEK, item, 'the number after # must be 1 to 5')
    return (date) => date.weekday === weekday && Math.ceil(date.day / 7) === Number(nth[2])
  }
  const last = /^(\w+)L$/i.exec(item)
  if (last) {
    const weekday = parseValue(DAY_OF_WEEK, item, last[1]!) % 7
    return (date) => date.weekday === weekday && date.day > lastDayOf(date) - 7
  }
  // FRI-SUN is 5-7; only the number 0 is always the first day.
  const weekdays = new Set(parseItem(DAY_OF_WEEK, item.replace(/^(?!SUN)(\w+)-SUN/i, '$1-7')).map((day) => day % 7))
  return (date) => weekdays.has(date.weekday)
}

function lastDayOf(date: CalendarDate): number {
  return daysInMonth(date.year, date.month)
}

/** Monday to Friday nearest to `day` in the date's month, without leaving the month. */
function nearestWeekday(date: CalendarDate, day: number): number {
  const weekday = (date.weekday + day - date.day + 35) % 7
  if (weekday === 6) return day > 1 ? day - 1 : day + 2
  if (weekday === 0) return day < lastDayOf(date) ? day + 1 : day - 2
  return day
}

/** The calendar repeats after 400 years, weekdays included: what has not come by then never will. */
function refuseImpossible(days: CronDays, month: string): void {
  if (firstDay(days, midnightOf(2000, 1, 1), midnightOf(2400, 1, 1)) !== null) return
  throw fieldError(DAY_OF_MONTH, days.dayOfMonth, `no such day ever comes with month ${JSON.stringify(month)} and day-of-week ${JSON.stringify(days.dayOfWeek)}`)
}

/** The midnight of the first matching date from `day`, a midnight itself, to `until`; null when none comes. */
export function firstDay(days: CronDays, day: Reading, until: Reading = LAST_READING): Reading | null {
  while (day <= until) {
    const date = dateOf(day)
    if (!days.months.has(date.month)) day = midnightOf(date.year, date.month + 1, 1)
    else if (days.matches(date)) return day
    else day += DAY_MS
  }
  return null
}

/** The midnight of the last matching date up to `day`, a midnight itself; null when none came since the year 1. */
export function lastDay(days: CronDays, day: Reading): Reading | null {
  while (day >= FIRST_READING) {
    const date = dateOf(day)
    if (!days.months.has(date.month)) day = midnightOf(date.year, date.month, 0)
    else if (days.matches(date)) return day
    else day -= DAY_MS
  }
  return null
}

/** A whole cron expression: its fields, what kind of entry it is, and the readings it means. */
import { invalidOption } from '../errors.ts'
import type { Reading, ReadingPattern } from './wall-clock.ts'
import { DAY_MS, MINUTE_MS, SECOND_MS, floorDay } from './wall-clock.ts'
import type { CronDays } from './cron-day.ts'
import { firstDay, lastDay, parseDays } from './cron-day.ts'
import type { FieldSpec } from './cron-field.ts'
import { parseField } from './cron-field.ts'

export interface CronExpression extends ReadingPattern {
  /**
   * Vixie's distinction: an entry is of the interval kind when its minute or its hour field begins with `*`, and of
   * the fixed-time kind otherwise. A sixth field, the seconds, is not asked: `0/10 30 2 * * *` is one burst at 02:30.
   */
  readonly interval: boolean
  /** Whether a field for seconds was given. */
  readonly seconds: boolean
  readonly days: CronDays
}

const SECOND: FieldSpec = { name: 'second', min: 0, max: 59, cycle: 60 }
const MINUTE: FieldSpec = { name: 'minute', min: 0, max: 59, cycle: 60 }
const HOUR: FieldSpec = { name: 'hour', min: 0, max: 23, cycle: 24 }

const NICKNAMES: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

/** Five fields, six with the seconds first, or a nickname. @throws INVALID_OPTION naming the field and the value. */
export function parseCron(text: string): CronExpression {
  const fields = splitFields(text)
  const [second, minute, hour, dayOfMonth, month, dayOfWeek] = (fields.length === 5 ? ['0', ...fields] : fields) as [string, string, string, string, string, string]
  const seconds = parseField(SECOND, second)
  const minutes = parseField(MINUTE, minute)
  const minutesOfDay = parseField(HOUR, hour).flatMap((hours) => minutes.map((past) => hours * 60 + past))
  const days = parseDays(dayOfMonth, month, dayOfWeek)
  return {
    interval: minute.startsWith('*') || hour.startsWith('*'),
    seconds: fields.length === 6,
    days,
    ...readings(days, { minutesOfDay, seconds }),
  }
}

function splitFields(text: string): string[] {
  const trimmed = text.trim()
  if (trimmed === '') throw invalidOption('cron', 'is empty')
  const fields = (trimmed.startsWith('@') ? expandNickname(trimmed) : trimmed).split(/\s+/)
  if (fields.length === 5 || fields.length === 6) return fields
  throw invalidOption('cron', `needs 5 fields (minute hour day-of-month month day-of-week), or 6 with the second first; ${JSON.stringify(trimmed.slice(0, 60))} has ${fields.length}`)
}

function expandNickname(text: string): string {
  const fields = NICKNAMES[text.toLowerCase()]
  if (fields) return fields
  const why = /^@reboot$/i.test(text) ? 'names no time, so it opens no window' : `is not one of ${Object.keys(NICKNAMES).join(' ')}`
  throw invalidOption('cron', `${JSON.stringify(text.slice(0, 40))} ${why}`)
}

/** Ascending, each at least one long. */
interface ClockTimes {
  readonly minutesOfDay: readonly number[]
  readonly seconds: readonly number[]
}

function readings(days: CronDays, times: ClockTimes): ReadingPattern {
  return {
    lastAtOrBefore(reading) {
      for (let day = lastDay(days, floorDay(reading)); day !== null; day = lastDay(days, day - DAY_MS)) {
        const time = lastTime(times, reading - day)
        if (time !== null) return day + time
      }
      return null
    },
    firstAtOrAfter(reading) {
      for (let day = firstDay(days, floorDay(reading)); day !== null; day = firstDay(days, day + DAY_MS)) {
        const time = firstTime(times, reading - day)
        if (time !== null) return day + time
      }
      return null
    },
  }
}

/** The last time of day at or before `limit`, milliseconds after midnight; a limit beyond the day is no limit. */
function lastTime({ minutesOfDay, seconds }: ClockTimes, limit: Reading): Reading | null {
  const minute = Math.floor(limit / MINUTE_MS)
  const second = seconds.findLast((value) => value * SECOND_MS <= limit - minute * MINUTE_MS)
  if (second !== undefined && minutesOfDay.includes(minute)) return minute * MINUTE_MS + second * SECOND_MS
  const earlier = minutesOfDay.findLast((value) => value < minute)
  return earlier === undefined ? null : earlier * MINUTE_MS + seconds.at(-1)! * SECOND_MS
}

/** The first time of day at or after `limit`; a limit before the day is no limit. */
function firstTime({ minutesOfDay, seconds }: ClockTimes, limit: Reading): Reading | null {
  const minute = Math.floor(limit / MINUTE_MS)
  const second = seconds.find((value) => value * SECOND_MS >= limit - minute * MINUTE_MS)
  if (second !== undefined && minutesOfDay.includes(minute)) return minute * MINUTE_MS + second * SECOND_MS
  const later = minutesOfDay.find((value) => value > minute)
  return later === undefined ? null : later * MINUTE_MS + seconds[0]! * SECOND_MS
}

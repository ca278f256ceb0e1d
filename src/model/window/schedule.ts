/** A schedule: when windows begin, in which zone, said as a cron expression or as a period. */
import { durationMs } from '../duration.ts'
import type { LedgerError } from '../errors.ts'
import { invalidOption } from '../errors.ts'
import type { CalendarPeriod } from './calendar-period.ts'
import { periodStarts } from './calendar-period.ts'
import type { CronExpression } from './cron-expression.ts'
import { parseCron } from './cron-expression.ts'
import type { Beat, WallClockBeat } from './occurrence.ts'
import { MINUTE_MS, SECOND_MS } from './wall-clock.ts'
import { requireZone } from './zone.ts'

export type Schedule = CronSchedule | EverySchedule

interface CommonParts {
  /** The text as it was given. */
  readonly source: string
  /** IANA name. */
  readonly zone: string
  /** Whether two windows can begin in one minute, so that labels need the seconds. */
  readonly seconds: boolean
}

export interface CronSchedule extends CommonParts {
  readonly kind: 'cron'
  readonly expression: CronExpression
  readonly beat: WallClockBeat
}

export interface EverySchedule extends CommonParts {
  readonly kind: 'every'
  readonly beat: Beat
}

/**
 * Windows that begin as cron(5) says: five fields, six with the seconds first, or a nickname such as `@daily`, read in
 * `zone`. What becomes of readings that a clock change skips or repeats is said at ClockRule, in occurrence.ts.
 * @throws INVALID_OPTION naming `cron`, with the field and the value, or `tz`.
 */
export function cron(expression: string, zone = 'UTC'): CronSchedule {
  const parsed = parseCron(expression)
  const beat: WallClockBeat = { by: 'wall clock', pattern: parsed, rule: parsed.interval ? 'interval' : 'fixed' }
  return { kind: 'cron', source: expression, zone: requireZone(zone), seconds: parsed.seconds, expression: parsed, beat }
}

/**
 * Windows of one length. `'30s'`, `'15m'`, `'1h'`, `'36h'`: elapsed time, counted from the Unix epoch, the same in every zone.
 * `'1d'`, `'1w'` (from Monday), `'1mo'`, `'3mo'` (quarters), `'1y'`: by the calendar of `zone`, whatever the hours in between.
 * @throws INVALID_OPTION naming `every` or `tz`.
 */
export function every(period: string, zone = 'UTC'): EverySchedule {
  const beat = parsePeriod(period)
  const seconds = beat.by === 'elapsed' && beat.ms % MINUTE_MS !== 0
  return { kind: 'every', source: period, zone: requireZone(zone), seconds, beat }
}

function parsePeriod(text: string): Beat {
  const unit = /^\d+(?:\.\d+)?(s|m|h|d|w|mo|y)$/.exec(text)?.[1]
  if (unit === undefined) throw refusal('must be a time such as 30s, 15m or 1h, or by the calendar 1d, 1w, 1mo, 3mo or 1y', text)
  if (unit !== 's' && unit !== 'm' && unit !== 'h') return { by: 'wall clock', pattern: periodStarts(parseCalendarPeriod(text)), rule: 'calendar' }
  const ms = durationMs('every', text)
  if (ms % SECOND_MS !== 0) throw refusal('must be whole seconds', text)
  return { by: 'elapsed', ms }
}

/** Only periods that begin anew with a unit of the calendar: every second week, or every fifth month, from when? */
function parseCalendarPeriod(text: string): CalendarPeriod {
  if (text === '1d') return { days: 1 }
  if (text === '1w') return { days: 7 }
  if (text === '1y') return { months: 12 }
  const months = Number(/^([1-9]\d*)mo$/.exec(text)?.[1])
  if (12 % months === 0) return { months }
  throw refusal('by the calendar must be 1d, 1w, 1mo, 2mo, 3mo, 4mo, 6mo, 12mo or 1y (others have no natural beginning)', text)
}

function refusal(problem: string, text: string): LedgerError {
  return invalidOption('every', `${problem}, got ${JSON.stringify(text.slice(0, 40))}`)
}

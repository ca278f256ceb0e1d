/** Calendar days, ISO weeks, months and years: the midnights at which they begin. */
import type { Reading, ReadingPattern } from './wall-clock.ts'
import { DAY_MS, FIRST_READING, LAST_READING, dateOf, floorDay, midnightOf } from './wall-clock.ts'

/** How long one period is: so many days from Monday (7) or from any day (1), or so many months from January. */
export type CalendarPeriod = { readonly days: 1 | 7 } | { readonly months: number }

/** The midnights, as a pattern of readings. */
export function periodStarts(period: CalendarPeriod): ReadingPattern {
  return {
    lastAtOrBefore(reading) {
      const start = startOf(period, reading)
      return start >= FIRST_READING ? start : null
    },
    firstAtOrAfter(reading) {
      const start = startOf(period, reading)
      const first = start === reading ? start : following(period, start)
      return first <= LAST_READING ? first : null
    },
  }
}

function startOf(period: CalendarPeriod, reading: Reading): Reading {
  const { year, month, weekday } = dateOf(reading)
  if ('months' in period) return midnightOf(year, month - ((month - 1) % period.months), 1)
  const sinceMonday = (weekday + 6) % 7
  return floorDay(reading) - (period.days === 7 ? sinceMonday : 0) * DAY_MS
}

function following(period: CalendarPeriod, start: Reading): Reading {
  if ('days' in period) return start + period.days * DAY_MS
  const { year, month } = dateOf(start)
  return midnightOf(year, month + period.months, 1)
}

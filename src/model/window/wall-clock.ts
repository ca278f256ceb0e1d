/** Readings of a wall clock as plain numbers, so that calendars can be reckoned without a time zone. */

/** A date and time as a clock on the wall shows it: the milliseconds at which UTC shows the same digits. */
export type Reading = number

/** Which readings a schedule waits for. Both ways are asked with any reading and answer whole seconds. */
export interface ReadingPattern {
  /** The latest such reading at or before `reading`; null when there is none in the years 1 to 9999. */
  lastAtOrBefore(reading: Reading): Reading | null
  /** The earliest such reading at or after `reading`; null when there is none in the years 1 to 9999. */
  firstAtOrAfter(reading: Reading): Reading | null
}

export interface CalendarDate {
  readonly year: number
  /** 1 is January. */
  readonly month: number
  readonly day: number
  /** 0 is Sunday. */
  readonly weekday: number
}

export const SECOND_MS = 1000
export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000

/** Four-digit years only: labels stay sortable, and every search has an end. */
export const FIRST_READING: Reading = midnightOf(1, 1, 1)
export const LAST_READING: Reading = midnightOf(10_000, 1, 1) - 1

/** The reading at midnight of a date; a month or day out of range runs over, as `(2026, 13, 1)` is 1 January 2027. */
export function midnightOf(year: number, month: number, day: number): Reading {
  // Date.UTC would take the years 0 to 99 for 1900 to 1999.
  return new Date(0).setUTCFullYear(year, month - 1, day)
}

export function dateOf(reading: Reading): CalendarDate {
  const utc = new Date(reading)
  return { year: utc.getUTCFullYear(), month: utc.getUTCMonth() + 1, day: utc.getUTCDate(), weekday: utc.getUTCDay() }
}

export function floorDay(reading: Reading): Reading {
  return Math.floor(reading / DAY_MS) * DAY_MS
}

export function daysInMonth(year: number, month: number): number {
  return dateOf(midnightOf(year, month + 1, 0)).day
}

/** `2026-09-20-18:00`, or `2026-09-20-18:00:30` with seconds. Gregorian year, ASCII digits, whatever the locale. */
export function writeReading(reading: Reading, seconds: boolean): string {
  const iso = new Date(reading).toISOString()
  return `${iso.slice(0, 10)}-${iso.slice(11, seconds ? 19 : 16)}`
}

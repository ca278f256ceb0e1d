/** Windows of a schedule: the one an instant belongs to, the next, and all between two instants. */
import { invalidOption } from '../errors.ts'
import { labelOf } from './label.ts'
import { lastStrike, strikesFrom } from './occurrence.ts'
import type { Schedule } from './schedule.ts'
import { FIRST_READING, LAST_READING } from './wall-clock.ts'

/** The span `[start, end)` that one run accounts for. */
export interface Window {
  readonly start: Date
  readonly end: Date
  readonly zone: string
  readonly label: string
}

/** The window that began latest at or before `now`; null when none has since the year 1. */
export function windowAt(schedule: Schedule, now: Date): Window | null {
  const start = lastStrike(schedule.beat, schedule.zone, instantMs('now', now))
  return start === null || start < FIRST_READING ? null : windowOf(schedule, start, nextStartMs(schedule, start))
}

/** When the first window after `after` begins: strictly later, so that a loop over it always moves. */
export function nextStart(schedule: Schedule, after: Date): Date {
  return new Date(nextStartMs(schedule, instantMs('after', after)))
}

/** The windows that begin in `[from, to)`, in order. */
export function* windowsBetween(schedule: Schedule, from: Date, to: Date): Generator<Window> {
  const until = instantMs('to', to)
  let start: number | undefined
  for (const strike of strikesFrom(schedule.beat, schedule.zone, instantMs('from', from))) {
    if (start !== undefined) yield windowOf(schedule, start, strike)
    if (strike >= until) return
    start = strike
  }
}

/**
 * The window a launch at `now` was meant for: the next one, if that begins within `earlyMs` (timers drift) and is
 * nearer than the beginning of this one; otherwise `windowAt(now)`. The second condition keeps a launch on time from
 * being taken for an early one where windows are not much longer than `earlyMs`.
 */
export function launchWindow(schedule: Schedule, now: Date, earlyMs: number): Window | null {
  if (!(earlyMs >= 0)) throw invalidOption('early', `must be zero or more, got ${earlyMs}`)
  const current = windowAt(schedule, now)
  const next = current?.end ?? nextStart(schedule, now)
  const ahead = next.getTime() - now.getTime()
  const behind = current ? now.getTime() - current.start.getTime() : Infinity
  return ahead <= earlyMs && ahead < behind ? windowAt(schedule, next) : current
}

function nextStartMs(schedule: Schedule, after: number): number {
  const start = strikesFrom(schedule.beat, schedule.zone, after + 1).next().value
  if (start !== undefined && start <= LAST_READING) return start
  throw invalidOption(schedule.kind, `no window begins between ${new Date(after).toISOString()} and the year 10000`)
}

function windowOf(schedule: Schedule, start: number, end: number): Window {
  return { start: new Date(start), end: new Date(end), zone: schedule.zone, label: labelOf(schedule.zone, start, schedule.seconds) }
}

/** @throws INVALID_OPTION for an invalid date or one outside the years 1 to 9999. */
function instantMs(option: string, instant: Date): number {
  const ms = instant.getTime()
  if (ms >= FIRST_READING && ms <= LAST_READING) return ms
  throw invalidOption(option, 'must be an instant of the years 1 to 9999')
}

/** The rules of design.md section 5, followed minute by minute with a zone's clock in view: slow, plain, and no search at all. */
import type { CronEntry } from './random-schedules.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/**
 * The instants in `[from, to)` at which an entry is due, ascending. Minute by minute is enough since the 1970s, when
 * the last zone gave up offsets with seconds.
 */
export function dueInstants(entry: CronEntry, zone: string, from: number, to: number): number[] {
  const due = new Set<number>()
  const shown = new Set<number>()
  // A day earlier, so that the readings a fold will repeat have been seen.
  const begin = Math.floor(from / MINUTE) * MINUTE - 26 * HOUR
  let expected = begin + clockAt(zone, begin)
  for (let at = begin; at < to; at += MINUTE) {
    const reading = at + clockAt(zone, at)
    const jump = reading - expected
    if (jump > 0 && jump <= 3 * HOUR && !entry.interval && anyMatch(entry, expected, reading)) due.add(at)
    if (isMatch(entry, reading) && (entry.interval || !shown.has(reading))) for (const second of entry.seconds) due.add(at + second * 1000)
    shown.add(reading)
    expected = reading + MINUTE
  }
  return [...due].filter((at) => at >= from && at < to).toSorted((a, b) => a - b)
}

function anyMatch(entry: CronEntry, first: number, end: number): boolean {
  for (let reading = first; reading < end; reading += MINUTE) if (isMatch(entry, reading)) return true
  return false
}

function isMatch(entry: CronEntry, reading: number): boolean {
  const clock = new Date(reading)
  return entry.minutes.has(clock.getUTCMinutes()) && entry.hours.has(clock.getUTCHours())
    && entry.day({ year: clock.getUTCFullYear(), month: clock.getUTCMonth() + 1, day: clock.getUTCDate() })
}

const clocks = new Map<string, Intl.DateTimeFormat>()

/** What the zone's clock shows minus UTC, from Intl itself: another way than the engine's. */
function clockAt(zone: string, at: number): number {
  let clock = clocks.get(zone)
  if (!clock) {
    clock = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
    clocks.set(zone, clock)
  }
  const [, sign, hours, minutes] = /GMT(?:([+-])(\d\d):(\d\d))?$/.exec(clock.format(at))!
  return (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * HOUR + Number(minutes ?? 0) * MINUTE)
}

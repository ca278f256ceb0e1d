/**
 * The instants at which a beat strikes, searched forwards or backwards from any instant.
 *
 * For a beat on the wall clock there is one engine and three rules. Time is cut into stretches of constant offset; a
 * stretch owns a span of readings, and each reading of the pattern in that span strikes once, at the instant that
 * shows it or, when none in the stretch does, at the stretch's first. The rule only says where the span begins:
 *
 *     gap   01:59 → 03:00   shown from 03:00, expected from 02:00: owning 02:00 to 03:00 is the catch-up
 *     fold  01:59 → 01:00   shown from 01:00, expected from 02:00: not owning 01:00 to 02:00 is "the first only"
 */
import type { Reading, ReadingPattern } from './wall-clock.ts'
import { HOUR_MS, SECOND_MS } from './wall-clock.ts'
import type { Stretch } from './stretch.ts'
import { stretches } from './stretch.ts'

/** Every `ms` of elapsed time, counted from the Unix epoch; no clock change touches it. */
export interface ElapsedBeat {
  readonly by: 'elapsed'
  readonly ms: number
}

/**
 * - `interval`: whenever the clock shows the reading. Nothing for one that is skipped, twice for one that is repeated.
 * - `fixed`: once for each reading, as soon as the clock shows it or has jumped over it by at most three hours.
 * - `calendar`: once for each reading, as soon as the clock shows it or a later one, however far it jumped.
 */
export type ClockRule = 'interval' | 'fixed' | 'calendar'

export interface WallClockBeat {
  readonly by: 'wall clock'
  readonly pattern: ReadingPattern
  readonly rule: ClockRule
}

export type Beat = ElapsedBeat | WallClockBeat

/** A longer jump is a correction of the clock (Apia 2011), which Vixie cron does not catch up on either. */
export const LONGEST_GAP_MS = 3 * HOUR_MS

/** No zone has ever been farther from UTC: Manila kept -15:56 until 1844. */
const FARTHEST_OFFSET_MS = 16 * HOUR_MS

/** How much time is searched at once: all the instants that could show one reading, in any zone. */
const CHUNK_MS = 2 * FARTHEST_OFFSET_MS

/** The strikes at or after `from`, earliest first. */
export function* strikesFrom(beat: Beat, zone: string, from: number): Generator<number> {
  if (beat.by === 'elapsed') {
    for (let at = Math.ceil(from / beat.ms) * beat.ms; ; at += beat.ms) yield at
  }
  for (let since = from; ; since += CHUNK_MS) {
    const reading = beat.pattern.firstAtOrAfter(since - FARTHEST_OFFSET_MS)
    if (reading === null) return
    // Leap: nothing strikes before the earliest instant that could show the pattern's next reading.
    since = Math.max(since, reading - FARTHEST_OFFSET_MS)
    yield* strikesWithin(beat, zone, since, since + CHUNK_MS - 1)
  }
}

/** The latest strike at or before `until`; null when there is none in the years 1 to 9999. */
export function lastStrike(beat: Beat, zone: string, until: number): number | null {
  if (beat.by === 'elapsed') return Math.floor(until / beat.ms) * beat.ms
  for (let last = until; ; last -= CHUNK_MS) {
    const reading = beat.pattern.lastAtOrBefore(last + FARTHEST_OFFSET_MS)
    if (reading === null) return null
    // The same leap, the other way.
    last = Math.min(last, reading + FARTHEST_OFFSET_MS)
    const strike = lastStrikeWithin(beat, zone, last - CHUNK_MS + 1, last)
    if (strike !== null) return strike
  }
}

function* strikesWithin({ pattern, rule }: WallClockBeat, zone: string, from: number, to: number): Generator<number> {
  for (const stretch of stretches(zone, from, to)) {
    const { first, last } = ownReadings(rule, stretch, from)
    let previous = -Infinity
    for (let reading = pattern.firstAtOrAfter(first); reading !== null && reading <= last; reading = pattern.firstAtOrAfter(reading + SECOND_MS)) {
      const at = strikeOf(reading, stretch)
      // All that a gap skipped, and a reading shown just after it, strike at the one instant.
      if (at > previous) yield at
      previous = at
    }
  }
}

function lastStrikeWithin({ pattern, rule }: WallClockBeat, zone: string, from: number, to: number): number | null {
  for (const stretch of stretches(zone, from, to).toReversed()) {
    const { first, last } = ownReadings(rule, stretch, from)
    const reading = pattern.lastAtOrBefore(last)
    if (reading !== null && reading >= first) return strikeOf(reading, stretch)
  }
  return null
}

/** The readings that strike in this stretch, not before `from`; none when `first` is after `last`. */
function ownReadings(rule: ClockRule, stretch: Stretch, from: number): { first: Reading; last: Reading } {
  const first = firstReading(rule, stretch)
  return {
    first: from > stretch.start ? Math.max(first, from + stretch.offset) : first,
    last: stretch.end - 1 + stretch.offset,
  }
}

function firstReading(rule: ClockRule, { start, offset, offsetBefore }: Stretch): Reading {
  const shown = start + offset
  const expected = start + offsetBefore
  if (rule === 'interval') return shown
  if (rule === 'fixed' && shown - expected > LONGEST_GAP_MS) return shown
  return expected
}

/** A reading that the stretch owns but never shows is in the gap before it. */
function strikeOf(reading: Reading, { start, offset }: Stretch): number {
  return Math.max(start, reading - offset)
}

/** The instants at which a zone's clocks are changed, found by asking for its offset and nothing else. */
import type { Reading } from './wall-clock.ts'
import { DAY_MS, HOUR_MS } from './wall-clock.ts'
import { offsetMs } from './zone.ts'

export interface ClockChange {
  /** The first instant of the new offset. */
  readonly at: number
  readonly before: number
  readonly after: number
}

/** The readings `[first, end)`; none when `first` is not before `end`. */
export interface ReadingSpan {
  readonly first: Reading
  readonly end: Reading
}

/** The longest on record: Alaska repeated a whole day in 1867, Kwajalein 23 hours in 1969. */
export const LONGEST_FOLD_MS = 25 * HOUR_MS

/**
 * No zone of the tz database (2026c) has ever kept an offset for less than 3.9 days (Freetown, 1939), nor for less
 * than 6.9 since 1970 (Gaza, Recife). So equal offsets this close together have no change between them.
 */
const PROBE_MS = 2 * DAY_MS

/** The changes in `(from, to]`, in order. */
export function* clockChanges(zone: string, from: number, to: number): Generator<ClockChange> {
  let at = from
  let before = offsetMs(zone, at)
  while (at < to) {
    const probe = Math.min(at + PROBE_MS, to)
    if (offsetMs(zone, probe) === before) {
      at = probe
      continue
    }
    at = firstOtherOffset(zone, before, at, probe)
    const after = offsetMs(zone, at)
    yield { at, before, after }
    before = after
  }
}

/** Halves the distance from `same` to `other` until they stand side by side. */
function firstOtherOffset(zone: string, before: number, same: number, other: number): number {
  while (other - same > 1) {
    const middle = Math.floor((same + other) / 2)
    if (offsetMs(zone, middle) === before) same = middle
    else other = middle
  }
  return other
}

/** What the clocks never show, when they are put forward: a gap. */
export function skippedReadings({ at, before, after }: ClockChange): ReadingSpan {
  return { first: at + before, end: at + after }
}

/** What the clocks show twice, when they are put back: a fold. */
export function repeatedReadings({ at, before, after }: ClockChange): ReadingSpan {
  return { first: at + after, end: at + before }
}

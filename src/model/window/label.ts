/** The label of a window: what a clock in the zone shows when it opens, made unique where the zone repeats itself. */
import { LONGEST_FOLD_MS, clockChanges, repeatedReadings } from './clock-change.ts'
import type { Reading } from './wall-clock.ts'
import { writeReading } from './wall-clock.ts'
import { offsetMs, writeOffset } from './zone.ts'

/**
 * `2026-09-20-18:00`, with seconds `2026-09-20-18:00:30`; where the zone shows that twice, with the offset
 * `2026-11-01-01:30-04:00`. The form depends on the zone and the instant, never on which windows a schedule has.
 */
export function labelOf(zone: string, at: number, seconds: boolean): string {
  const offset = offsetMs(zone, at)
  const label = writeReading(at + offset, seconds)
  return isShownTwice(zone, at, at + offset) ? label + writeOffset(offset) : label
}

/** Whether the reading shown at `at` is shown at another instant as well. */
function isShownTwice(zone: string, at: number, reading: Reading): boolean {
  for (const change of clockChanges(zone, at - LONGEST_FOLD_MS, at + LONGEST_FOLD_MS)) {
    const { first, end } = repeatedReadings(change)
    if (reading >= first && reading < end) return true
  }
  return false
}

/** The label of a window: what a clock in the zone shows when it opens, made unique where the zone repeats itself. */
import { LONGEST_FOLD_MS, clockChanges, repeatedReadings } from './clock-change.ts'
import type { Reading } from './wall-clock.ts'
import { MINUTE_MS, SECOND_MS, writeReading } from './wall-clock.ts'
import { offsetMs, writeOffset } from './zone.ts'

/**
 * `2026-09-20-18:00`, with seconds `2026-09-20-18:00:30`; where the zone shows that twice, with the offset
 * `2026-11-01-01:30-04:00`. The form depends on the zone and the instant, never on which windows a schedule has.
 */
export function labelOf(zone: string, at: number, seconds: boolean): string {
  const offset = offsetMs(zone, at)
  const reading = at + offset
  const unit = seconds ? SECOND_MS : MINUTE_MS
  const label = writeReading(reading, seconds)
  return isShownTwice(zone, at, Math.floor(reading / unit) * unit, unit) ? label + writeOffset(offset) : label
}

/** Whether any of the readings `[first, first + span)`, one of them shown at `at`, is shown at another instant as well. */
function isShownTwice(zone: string, at: number, first: Reading, span: number): boolean {
  for (const change of clockChanges(zone, at - LONGEST_FOLD_MS, at + LONGEST_FOLD_MS)) {
    const repeated = repeatedReadings(change)
    if (repeated.first < repeated.end && first < repeated.end && first + span > repeated.first) return true
  }
  return false
}

/** What one clock change does to the windows of a schedule, in words. */
import { formatDuration } from '../duration.ts'
import type { ClockChange, ReadingSpan } from './clock-change.ts'
import { repeatedReadings, skippedReadings } from './clock-change.ts'
import { labelOf } from './label.ts'
import type { WallClockBeat } from './occurrence.ts'
import { LONGEST_GAP_MS } from './occurrence.ts'
import type { Schedule } from './schedule.ts'
import type { Reading } from './wall-clock.ts'
import { SECOND_MS, writeReading } from './wall-clock.ts'

/** So many times of day are written out; a schedule of every minute has sixty in most changes. */
const EXAMPLES = 3

/** One line: when, what the clocks do, which windows that opens and which it does not. */
export function explainChange(schedule: Schedule, change: ClockChange): string {
  const size = change.after - change.before
  const { first, end } = size > 0 ? skippedReadings(change) : repeatedReadings(change)
  const span = `${writeReading(first, false)} to ${writeReading(end, false)}`
  const clocks = size > 0 ? `forward ${formatDuration(size)}, ${span} is skipped` : `back ${formatDuration(-size)}, ${span} is shown twice`
  return `${new Date(change.at).toISOString()} ${clocks}: ${consequence(schedule, change)}`
}

function consequence(schedule: Schedule, change: ClockChange): string {
  const { beat } = schedule
  if (beat.by === 'elapsed') return change.after > change.before ? 'windows go on as before' : 'windows go on as before, their labels there carry the offset'
  return change.after > change.before ? inGap(schedule, beat, change) : inFold(schedule, beat, change)
}

function inGap(schedule: Schedule, beat: WallClockBeat, change: ClockChange): string {
  const skipped = readingsIn(beat, skippedReadings(change))
  if (skipped.length === 0) return 'no window is touched'
  const times = list(skipped, (reading) => timeOfDay(schedule, reading))
  if (beat.rule === 'interval') return `${times} opens no window`
  if (beat.rule === 'fixed' && change.after - change.before > LONGEST_GAP_MS) return `${times} opens no window, for the jump is longer than 3 h`
  return `${times} opens one window at once, ${labelOf(schedule.zone, change.at, schedule.seconds)}`
}

function inFold(schedule: Schedule, beat: WallClockBeat, change: ClockChange): string {
  const repeated = readingsIn(beat, repeatedReadings(change))
  if (repeated.length === 0) return 'no window is touched'
  const label = (at: number): string => labelOf(schedule.zone, at, schedule.seconds)
  const times = list(repeated, (reading) => timeOfDay(schedule, reading))
  if (beat.rule !== 'interval') return `${times} opens a window the first time only, ${list(repeated, (reading) => label(reading - change.before))}`
  return `${times} opens a window both times, ${list(repeated, (reading) => `${label(reading - change.before)} and ${label(reading - change.after)}`)}`
}

function readingsIn({ pattern }: WallClockBeat, { first, end }: ReadingSpan): Reading[] {
  const found: Reading[] = []
  for (let reading = pattern.firstAtOrAfter(first); reading !== null && reading < end; reading = pattern.firstAtOrAfter(reading + SECOND_MS)) found.push(reading)
  return found
}

function timeOfDay({ seconds }: Schedule, reading: Reading): string {
  return writeReading(reading, seconds).slice('yyyy-MM-dd-'.length)
}

function list(readings: readonly Reading[], write: (reading: Reading) => string): string {
  const written = readings.slice(0, EXAMPLES).map(write).join(', ')
  return readings.length > EXAMPLES ? `${written}, … (${readings.length} in all)` : written
}

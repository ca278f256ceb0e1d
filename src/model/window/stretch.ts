/** Stretches of time between two clock changes: within one, a wall clock simply runs. */
import { LONGEST_FOLD_MS, clockChanges } from './clock-change.ts'
import { offsetMs } from './zone.ts'

/** The instants `[start, end)`, all at `offset`; until `start` the offset was `offsetBefore`. */
export interface Stretch {
  readonly start: number
  readonly end: number
  readonly offset: number
  readonly offsetBefore: number
}

/**
 * The stretches that cover `[from, to]`, in order. They begin early enough to know of every change whose fold is
 * still being shown at `from`.
 */
export function stretches(zone: string, from: number, to: number): Stretch[] {
  const found: Stretch[] = []
  let start = from - LONGEST_FOLD_MS
  let offset = offsetMs(zone, start)
  let offsetBefore = offset
  for (const change of clockChanges(zone, start, to)) {
    found.push({ start, end: change.at, offset, offsetBefore })
    start = change.at
    offset = change.after
    offsetBefore = change.before
  }
  found.push({ start, end: to + 1, offset, offsetBefore })
  return found
}

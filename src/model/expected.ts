/** Which windows of a task are expected at all, and the way back from one to the next. */
import type { Schedule } from './window/schedule.ts'
import { windowAt, type Window } from './window/window.ts'
import type { Task } from './task.ts'

/** The earliest instant at which a window of the task can be expected; null when none is. */
export function expectedFrom({ schedule, expectedSince, prunedBefore }: Pick<Task, 'schedule' | 'expectedSince' | 'prunedBefore'>): Date | null {
  if (schedule === null || expectedSince === null) return null
  return prunedBefore !== null && prunedBefore > expectedSince ? prunedBefore : expectedSince
}

/** The windows that begin before `before`, latest first, down to those that begin at `from`. */
export function* windowsBack(schedule: Schedule, before: Date, from: Date): Generator<Window> {
  for (let at = before.getTime() - 1; at >= from.getTime(); ) {
    const window = windowAt(schedule, new Date(at))
    if (!window || window.start < from) return
    yield window
    at = window.start.getTime() - 1
  }
}

export function* inBatches(windows: Iterable<Window>, size: number): Generator<Window[]> {
  let batch: Window[] = []
  for (const window of windows) {
    if (batch.push(window) < size) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

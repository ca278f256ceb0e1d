/** The 94 rows of windows.json, each checked by two other implementations, as schedules and expected windows. */
import checked from './windows.json' with { type: 'json' }
import type { Schedule } from '../../../src/model/window/schedule.ts'
import { cron, every } from '../../../src/model/window/schedule.ts'
import { windowAt } from '../../../src/model/window/window.ts'

export type CheckedRow = (typeof checked.cases)[number]

export const checkedRows: readonly CheckedRow[] = checked.cases

const PERIODS: Readonly<Record<string, string>> = { P1D: '1d', P1W: '1w', P1M: '1mo', P3M: '3mo', PT15M: '15m', PT1H: '1h', PT7M: '7m' }

export function scheduleOf(row: CheckedRow): Schedule {
  return row.cron === undefined ? every(PERIODS[row.period]!, row.tz) : cron(row.cron, row.tz)
}

export interface Answer {
  readonly id: string
  readonly start: string | null
  readonly label: string | null
}

/** What we say about a row; nulls where the schedule is refused because it never comes. */
export function answer(row: CheckedRow): Answer {
  if (row.window_start === null) return { id: row.id, start: null, label: null }
  const window = windowAt(scheduleOf(row), new Date(row.now))
  return { id: row.id, start: window?.start.toISOString() ?? null, label: window?.label ?? null }
}

/** What the row says; the label in the form the design gives it: with the offset where ambiguous, with seconds where the schedule has them. */
export function expectation(row: CheckedRow): Answer {
  const label = row.label_ambiguous ? row.label_with_offset : row.cron?.split(' ').length === 6 ? `${row.label}:50` : row.label
  return { id: row.id, start: row.window_start, label }
}

/** What became of a window that should have run. */
import type { Run } from './run.ts'
import type { Window } from './window/window.ts'

/**
 * `missing`: nobody ran it, and its grace is over. `lost`: its owner is gone, and no launch has taken it up yet, or no
 * attempt was left. `late`: it is completed, but began after its grace. `running_too_long`: longer than the limit.
 */
export const WINDOW_STATES = ['missing', 'failed', 'lost', 'late', 'running', 'running_too_long', 'pending'] as const
export type WindowState = (typeof WINDOW_STATES)[number]

export interface MissedWindow {
  readonly task: string
  readonly taskKey: string
  readonly windowStart: Date
  readonly windowEnd: Date
  readonly windowZone: string
  readonly state: WindowState
  /** Why it failed, or why its last launch was refused. */
  readonly reason: string | null
  /** How long after the window's beginning its attempt began. */
  readonly lateSeconds: number | null
  readonly run: WindowRun | null
}

/** A run as far as it says what became of its window. */
export type WindowRun = Pick<Run, 'taskKey' | 'status' | 'attempt' | 'host' | 'pid' | 'startedAt' | 'finishedAt' | 'availableAt' | 'failureReason' | 'exitCode' | 'leaseOver' | 'due'>

interface Limits {
  readonly now: Date
  readonly graceMs: number
  /** Null: none is known. */
  readonly tooLongMs: number | null
}

/** Null for a window that ran in time, or may still do so. */
export function stateOf(window: Pick<Window, 'start'>, run: WindowRun | null, { now, graceMs, tooLongMs }: Limits): WindowState | null {
  const dueUntil = window.start.getTime() + graceMs
  if (run === null) return dueUntil <= now.getTime() ? 'missing' : null
  switch (run.status) {
    case 'pending':
      return 'pending'
    case 'processing':
      if (run.leaseOver) return 'lost'
      return tooLongMs !== null && now.getTime() - run.startedAt!.getTime() > tooLongMs ? 'running_too_long' : 'running'
    case 'failed':
      return run.failureReason === 'lost' ? 'lost' : 'failed'
    case 'completed':
      return run.startedAt !== null && run.startedAt.getTime() > dueUntil ? 'late' : null
  }
}

/** How many of the latest completed runs say how long a run of the task takes, and how many of them it needs. */
export const USUAL_RUNS = 20
const FEWEST_RUNS = 3
const SHORTEST_LIMIT_MS = 60_000

/** Twice the longest of the latest completed runs; null when too few are known. */
export function usualLimitMs(durationsMs: readonly number[]): number | null {
  return durationsMs.length < FEWEST_RUNS ? null : Math.max(2 * Math.max(...durationsMs), SHORTEST_LIMIT_MS)
}

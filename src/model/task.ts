/** A task as the ledger knows it: its schedule, its terms, and from when on its windows are expected. */
import { durationMs } from './duration.ts'
import { invalidOption, isLedgerError } from './errors.ts'
import { OVERLAP_POLICIES, type OverlapPolicy } from './outcome.ts'
import { cron, every, type Schedule } from './window/schedule.ts'

/** What becomes of windows that nobody ran: nothing, the latest of them is run, or all (within the bounds). */
export const CATCH_UPS = ['none', 'latest', 'all'] as const
export type CatchUp = (typeof CATCH_UPS)[number]

/** A run that begins within this of its window is on time, where the task has no grace of its own. */
export const DEFAULT_GRACE_MS = 300_000
/** Older windows are not caught up. */
export const DEFAULT_CATCH_UP_AGE_MS = 7 * 86_400_000
/** Nor more of them than this at once. */
export const DEFAULT_CATCH_UP_COUNT = 100
export const MAX_CATCH_UP_COUNT = 1000

const MAX_SCHEDULE_LENGTH = 200
const MAX_ZONE_LENGTH = 64

export interface Task {
  readonly name: string
  /** A cron expression or a period, as it was given, in `zone`; null when no window is expected. */
  readonly schedule: string | null
  readonly zone: string | null
  readonly overlap: OverlapPolicy | null
  readonly graceMs: number
  readonly catchUp: CatchUp
  readonly catchUpMaxAgeMs: number
  readonly catchUpMaxCount: number
  /** The first window that is expected begins at or after it. */
  readonly expectedSince: Date | null
  /** Every window that begins before it has its run, or was passed over by a catch-up. */
  readonly accountedBefore: Date | null
  /** An operator set them, so that launches do not change them. */
  readonly scheduleSetAt: Date | null
  readonly overlapSetAt: Date | null
  readonly pausedAt: Date | null
  readonly pausedBy: string | null
  readonly pausedBecause: string | null
  /** Windows that begin before it were pruned: nobody knows of them any more. */
  readonly prunedBefore: Date | null
}

/** Who launches a task, from where, by which schedule. */
export interface TaskLauncher {
  readonly task: string
  readonly host: string
  readonly launcher: string
  readonly schedule: string
  readonly zone: string
  readonly firstSeenAt: Date
  /** Right to the hour. */
  readonly lastSeenAt: Date
}

/** A schedule as the ledger keeps it; null for one that is longer than the column. */
export function scheduleText({ source, zone }: Pick<Schedule, 'source' | 'zone'>): { schedule: string; zone: string } | null {
  const schedule = source.trim().replace(/\s+/g, ' ')
  return schedule.length > MAX_SCHEDULE_LENGTH || zone.length > MAX_ZONE_LENGTH ? null : { schedule, zone }
}

/** The schedule that was kept. A period is one word without `@`, which no cron expression is. @throws INVALID_OPTION */
export function scheduleOf({ schedule, zone }: Pick<Task, 'schedule' | 'zone'>): Schedule | null {
  if (schedule === null) return null
  return /^\d+(?:\.\d+)?[a-z]+$/.test(schedule) ? every(schedule, zone ?? 'UTC') : cron(schedule, zone ?? 'UTC')
}

/** Why the schedule that was kept cannot be read on this host, whose time zones may be older; null when it can. */
export function scheduleProblem(task: Pick<Task, 'schedule' | 'zone'>): string | null {
  try {
    scheduleOf(task)
    return null
  } catch (error) {
    if (!isLedgerError(error)) throw error
    return error.message
  }
}

/** What an operator says of a task; what is left out stays as it is. */
export interface TaskTerms {
  /** Null: no window is expected any more. `launched`: what the next launch says. */
  readonly schedule?: Schedule | null | 'launched'
  readonly overlap?: OverlapPolicy | 'launched'
  readonly graceMs?: number
  readonly catchUp?: CatchUp
  readonly catchUpMaxAgeMs?: number
  readonly catchUpMaxCount?: number
  /** Windows are expected, and caught up, from here on. */
  readonly since?: Date
}

/** @throws INVALID_OPTION */
export function checkTerms(terms: TaskTerms): TaskTerms {
  const { schedule, overlap, graceMs, catchUp, catchUpMaxAgeMs, catchUpMaxCount: count, since } = terms
  if (Object.keys(terms).length === 0) throw invalidOption('tasks', 'nothing to set')
  if (schedule && schedule !== 'launched' && scheduleText(schedule) === null) throw invalidOption(schedule.kind, `is longer than ${MAX_SCHEDULE_LENGTH} characters`)
  if (overlap !== undefined && overlap !== 'launched') checkChoice('overlap', overlap, OVERLAP_POLICIES)
  if (catchUp !== undefined) checkChoice('catch-up', catchUp, CATCH_UPS)
  if (graceMs !== undefined) durationMs('grace', graceMs, { zero: true })
  if (catchUpMaxAgeMs !== undefined) durationMs('catch-up-max-age', catchUpMaxAgeMs)
  if (count !== undefined && !(Number.isInteger(count) && count >= 1 && count <= MAX_CATCH_UP_COUNT)) throw invalidOption('catch-up-max-count', `must be a whole number from 1 to ${MAX_CATCH_UP_COUNT}, got ${count}`)
  if (since !== undefined && Number.isNaN(since.getTime())) throw invalidOption('since', 'is not an instant')
  return terms
}

function checkChoice(option: string, choice: string, choices: readonly string[]): void {
  if (!choices.includes(choice)) throw invalidOption(option, `must be one of ${choices.join(', ')}, got ${JSON.stringify(choice)}`)
}

/** Which windows of a span are to be filled: those that nobody ran, or whose run failed; never one that runs or is done. */
import type { BackfillChoice } from '../model/backfill-choice.ts'
import { invalidOption } from '../model/errors.ts'
import { inBatches } from '../model/expected.ts'
import type { WindowRun } from '../model/missing.ts'
import { taskKey } from '../model/names.ts'
import { scheduleOf } from '../model/task.ts'
import type { Schedule } from '../model/window/schedule.ts'
import { windowsBetween, type Window } from '../model/window/window.ts'
import { runsOfWindows } from '../store/find-runs.ts'
import { readTask } from '../store/read-task.ts'
import type { Store } from '../store/tables.ts'

export interface BackfillSpan {
  readonly task: string
  /** Windows that begin from here until before `to`, and not in the future. */
  readonly from: Date
  readonly to: Date
  /** Default `missing`. */
  readonly only?: BackfillChoice | undefined
  /** By default the task's own, as the ledger knows it. */
  readonly schedule?: Schedule | undefined
}

export interface BackfillWindow {
  readonly task: string
  readonly taskKey: string
  readonly windowStart: Date
  readonly windowEnd: Date
  readonly windowZone: string
  /** Null where nobody has begun or recorded it. */
  readonly run: WindowRun | null
  /** `run` it, `reopen` its failed run first, or `leave` it as it is. */
  readonly action: 'run' | 'reopen' | 'leave'
}

/** A window a minute for five weeks; more is filled in several goes. */
const MOST_WINDOWS = 50_000
const WINDOWS_AT_ONCE = 1000

/** The oldest first. @throws INVALID_OPTION */
export async function planBackfill(store: Store, { task, from, to, only = 'missing', schedule: given }: BackfillSpan): Promise<BackfillWindow[]> {
  const known = await readTask(store, task)
  const schedule = given ?? (known && scheduleOf(known))
  if (!schedule) throw invalidOption('task', `no schedule of ${JSON.stringify(task)} is known; give --cron or --every`)
  const until = new Date(Math.min(to.getTime(), Date.now()))
  const begin = new Date(Math.max(from.getTime(), known?.prunedBefore?.getTime() ?? -Infinity))
  const planned: BackfillWindow[] = []
  if (begin >= until) return planned
  for (const batch of inBatches(windowsBetween(schedule, begin, until), WINDOWS_AT_ONCE)) {
    const runs = await runsOfWindows(store, task, batch[0]!.start, new Date(batch.at(-1)!.start.getTime() + 1))
    const byStart = new Map(runs.map((run) => [run.windowStart, run]))
    planned.push(...batch.map((window) => plannedWindow(task, window, byStart.get(window.start.getTime()) ?? null, only)))
    if (planned.length > MOST_WINDOWS) throw invalidOption('to', `more than ${MOST_WINDOWS} windows begin in that span; fill a shorter one first`)
  }
  return planned
}

function plannedWindow(task: string, { start, end, zone, label }: Window, run: WindowRun | null, only: BackfillChoice): BackfillWindow {
  return { task, taskKey: run?.taskKey ?? taskKey(task, label), windowStart: start, windowEnd: end, windowZone: zone, run, action: actionFor(run, only) }
}

/** A pending run, or one whose owner is gone, may be where an earlier backfill was interrupted, so it is part of every choice. */
function actionFor(run: WindowRun | null, only: BackfillChoice): BackfillWindow['action'] {
  if (run === null) return only === 'failed' ? 'leave' : 'run'
  if (run.status === 'pending' || run.leaseOver) return 'run'
  // What an operator cancelled stays cancelled.
  return run.status === 'failed' && run.failureReason !== 'cancelled' && only !== 'missing' ? 'reopen' : 'leave'
}

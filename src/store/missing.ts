/** The windows of a task that have no run completed in time, found by walking its schedule beside its runs. */
import { sql } from 'kysely'
import { expectedFrom, inBatches, windowsBack } from '../model/expected.ts'
import { stateOf, USUAL_RUNS, usualLimitMs, type MissedWindow, type WindowRun } from '../model/missing.ts'
import { taskKey } from '../model/names.ts'
import { scheduleOf, type Task } from '../model/task.ts'
import type { Schedule } from '../model/window/schedule.ts'
import { windowsBetween, type Window } from '../model/window/window.ts'
import { refusals, runsOfWindows } from './find-runs.ts'
import type { Store } from './tables.ts'

export interface Span {
  readonly from: Date
  readonly to: Date
  /** Whether older windows of the wanted span are left out, because there are too many. */
  readonly cut: boolean
}

/** Of one task; a window a minute for five weeks. */
export const MOST_WINDOWS = 50_000
const WINDOWS_AT_ONCE = 1000
const SAMPLE = 200

/** The part of the span in which windows of the task are expected; null when there is none. */
export function spanOf(task: Task, since: Date, now: Date): Span | null {
  const expected = expectedFrom(task)
  if (expected === null) return null
  const wanted = new Date(Math.max(expected.getTime(), since.getTime()))
  const from = new Date(Math.max(wanted.getTime(), farthest(scheduleOf(task)!, wanted, now)))
  return from < now ? { from, to: now, cut: from > wanted } : null
}

/** About MOST_WINDOWS back from now, by how dense the latest ones are. */
function farthest(schedule: Schedule, from: Date, now: Date): number {
  const shortest = schedule.seconds ? 1000 : 60_000
  if (now.getTime() - from.getTime() <= MOST_WINDOWS * shortest) return -Infinity
  const latest = inBatches(windowsBack(schedule, now, from), SAMPLE).next().value ?? []
  if (latest.length < SAMPLE) return -Infinity
  return now.getTime() - ((latest[0]!.start.getTime() - latest.at(-1)!.start.getTime()) / (SAMPLE - 1)) * MOST_WINDOWS
}

/** The oldest first. @param tooLongMs how long a run may take; by default what is usual for the task */
export async function* missingWindows(store: Store, task: Task, { from, to }: Span, tooLongMs: number | null): AsyncGenerator<MissedWindow> {
  const limit = lazily(async () => tooLongMs ?? usualLimitMs(await latestDurationsMs(store, task.name)))
  for (const batch of inBatches(windowsBetween(scheduleOf(task)!, from, to), WINDOWS_AT_ONCE)) {
    const runs = await runsOfWindows(store, task.name, batch[0]!.start, new Date(batch.at(-1)!.start.getTime() + 1))
    const byStart = new Map(runs.map((run) => [run.windowStart, run]))
    const limits = { now: to, graceMs: task.graceMs, tooLongMs: runs.some(({ status }) => status === 'processing') ? await limit() : null }
    const found = batch.flatMap((window) => {
      const run = byStart.get(window.start.getTime()) ?? null
      const state = stateOf(window, run, limits)
      return state === null ? [] : [{ window, run, state }]
    })
    const reasons = await refusals(store, found.flatMap(({ window, run }) => (run ? [] : [taskKey(task.name, window.label)])))
    for (const { window, run, state } of found) yield missed(task, window, run, state, reasons)
  }
}

function missed(task: Task, window: Window, run: WindowRun | null, state: MissedWindow['state'], reasons: ReadonlyMap<string, string>): MissedWindow {
  const key = run?.taskKey ?? taskKey(task.name, window.label)
  return {
    task: task.name,
    taskKey: key,
    windowStart: window.start,
    windowEnd: window.end,
    windowZone: window.zone,
    state,
    reason: run ? run.failureReason : (reasons.get(key) ?? null),
    lateSeconds: run?.startedAt ? Math.max(0, (run.startedAt.getTime() - window.start.getTime()) / 1000) : null,
    run,
  }
}

async function latestDurationsMs(store: Store, task: string): Promise<number[]> {
  const rows = await store.db
    .selectFrom('task_runs')
    .select(store.secondsBetween(sql.ref('started_at'), sql.ref('finished_at')).as('seconds'))
    .where('task_name', '=', task)
    .where('status', '=', 'completed')
    .orderBy('finished_at', 'desc')
    .limit(USUAL_RUNS)
    .execute()
  return rows.map(({ seconds }) => Number(seconds) * 1000)
}

function lazily<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => (result ??= work())
}

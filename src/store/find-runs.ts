/** Which windows of a task have their run, and which were refused one: index range reads, however long the history. */
import { sql } from 'kysely'
import type { WindowRun } from '../model/missing.ts'
import { isDue, leaseIsOver } from './read-run.ts'
import type { Store } from './tables.ts'

/** A key list of this length stays one range scan, and one packet, on every database. */
const KEYS_AT_ONCE = 500

/** The runs of a task whose windows begin in `[from, to)`. */
export async function runsOfWindows(store: Store, task: string, from: Date, to: Date): Promise<(WindowRun & { readonly windowStart: number })[]> {
  const at = (value: unknown) => store.readInstant(value)
  const rows = await store.db
    .selectFrom('task_runs')
    .select(['task_key', 'window_start', 'status', 'attempt', 'host', 'pid', 'started_at', 'finished_at', 'available_at', 'failure_reason', 'exit_code'])
    .select([sql<number>`case when ${leaseIsOver(store)} then 1 else 0 end`.as('lease_over'), sql<number>`case when ${isDue(store)} then 1 else 0 end`.as('due')])
    .where('task_name', '=', task)
    .where(sql<boolean>`window_start >= ${store.instant(from)} and window_start < ${store.instant(to)}`)
    .execute()
  return rows.map((row) => ({
    taskKey: row.task_key,
    windowStart: at(row.window_start)!.getTime(),
    status: row.status,
    attempt: row.attempt,
    host: row.host,
    pid: row.pid === null ? null : Number(row.pid),
    startedAt: at(row.started_at),
    finishedAt: at(row.finished_at),
    availableAt: at(row.available_at)!,
    failureReason: row.failure_reason,
    exitCode: row.exit_code,
    leaseOver: Number(row.lease_over) === 1,
    due: Number(row.due) === 1,
  }))
}

/** The beginnings of those windows, in milliseconds. */
export async function knownStarts(store: Store, task: string, from: Date, to: Date): Promise<Set<number>> {
  const rows = await store.db
    .selectFrom('task_runs')
    .select('window_start')
    .where('task_name', '=', task)
    .where(sql<boolean>`window_start >= ${store.instant(from)} and window_start < ${store.instant(to)}`)
    .execute()
  return new Set(rows.map((row) => store.readInstant(row.window_start)!.getTime()))
}

/** Of these keys those whose launch lost, with the reason of the last one. */
export async function refusals(store: Store, taskKeys: readonly string[]): Promise<Map<string, string>> {
  const reasons = new Map<string, string>()
  for (let at = 0; at < taskKeys.length; at += KEYS_AT_ONCE) {
    const rows = await store.db
      .selectFrom('task_attempts')
      .select(['task_key', 'reason'])
      .where('task_key', 'in', taskKeys.slice(at, at + KEYS_AT_ONCE))
      .where('outcome', '=', 'conflict')
      .orderBy('id')
      .execute()
    for (const row of rows) if (row.reason !== null) reasons.set(row.task_key, row.reason)
  }
  return reasons
}

/** Reads runs and their history for people and programs. */
import { sql, type Selectable } from 'kysely'
import type { HistoryLine, Run } from '../model/run.ts'
import type { Status } from '../model/states.ts'
import { runOf, selectRuns } from './read-run.ts'
import type { Store, TaskAttempts } from './tables.ts'

export interface RunFilter {
  readonly task?: string | undefined
  readonly status?: Status | undefined
  /** Only runs created at or after it. */
  readonly since?: Date | undefined
  readonly limit: number
}

/** The newest runs first, by when they were first recorded. */
export async function listRuns(store: Store, { task, status, since, limit }: RunFilter): Promise<Run[]> {
  let query = selectRuns(store).orderBy('created_at', 'desc').orderBy('task_key', 'desc').limit(limit)
  if (task !== undefined) query = query.where('task_name', '=', task)
  if (status !== undefined) query = query.where('status', '=', status)
  if (since !== undefined) query = query.where(sql<boolean>`created_at >= ${store.instant(since)}`)
  return (await query.execute()).map((row) => runOf(store, row))
}

/** Everything that happened to a key, in order: attempts that ended, launches that lost, and the attempt on the run's row last. */
export async function readHistory(store: Store, taskKey: string): Promise<HistoryLine[]> {
  const rows = await store.db
    .selectFrom('task_run_history')
    .selectAll()
    .where('task_key', '=', taskKey)
    .orderBy(sql`case when ended_at is null then 1 else 0 end`)
    .orderBy('ended_at')
    .orderBy('attempt') // A takeover ends one and may end the next within a tick of the clock.
    .execute()
  return rows.map((row) => historyLine(store, row))
}

export function historyLine(store: Store, row: Selectable<TaskAttempts>): HistoryLine {
  const at = (value: unknown) => store.readInstant(value)
  const number = (value: bigint | number | string | null) => (value === null ? null : Number(value))
  return {
    taskKey: row.task_key,
    task: row.task_name,
    windowStart: at(row.window_start),
    attempt: row.attempt,
    outcome: row.outcome,
    reason: row.reason,
    instanceId: row.instance_id,
    host: row.host,
    pid: number(row.pid),
    launcher: row.launcher,
    fence: row.fence === null ? null : BigInt(row.fence),
    startedAt: at(row.started_at),
    heartbeatAt: at(row.heartbeat_at),
    endedAt: at(row.ended_at),
    exitCode: row.exit_code,
    error: row.error,
    outputTail: row.output_tail,
    heldByKey: row.held_by_key,
    heldByInstance: row.held_by_instance,
    heldByHost: row.held_by_host,
    heldByPid: number(row.held_by_pid),
    heldByLauncher: row.held_by_launcher,
    heldSince: at(row.held_since),
  }
}

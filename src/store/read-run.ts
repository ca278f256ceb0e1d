/** Reads runs, judged by the database's clock in the same statement. */
import { sql, type RawBuilder } from 'kysely'
import type { Run } from '../model/run.ts'
import type { FailureReason, Status } from '../model/states.ts'
import type { Db, Store } from './tables.ts'

/** True for a processing row whose lease has run out; never null, never true for another state. */
export function leaseIsOver(store: Store): RawBuilder<boolean> {
  return sql<boolean>`(status = 'processing' and ${store.plusSeconds(sql.ref('heartbeat_at'), sql.ref('lease_seconds'))} < ${store.now()})`
}

export function isDue(store: Store): RawBuilder<boolean> {
  return sql<boolean>`(status = 'pending' and available_at <= ${store.now()})`
}

/** A query for whole runs, to be narrowed by the caller; `runOf` reads its rows. */
export function selectRuns(store: Store, db: Db = store.db) {
  return db.selectFrom('task_runs').select([
    'task_key', 'task_name', 'window_start', 'window_end', 'window_zone', 'status', 'available_at', 'concurrency_key', 'attempt', 'max_attempts', 'fence',
    'instance_id', 'host', 'pid', 'process_identity', 'launcher', 'lease_seconds', 'started_at', 'heartbeat_at', 'finished_at', 'created_at', 'cancel_requested_at',
    'failure_reason', 'exit_code', 'error', 'output_tail',
    sql<number>`case when ${leaseIsOver(store)} then 1 else 0 end`.as('lease_over'),
    sql<number>`case when ${isDue(store)} then 1 else 0 end`.as('due'),
  ])
}

export async function readRun(store: Store, taskKey: string): Promise<Run | null> {
  const row = await selectRuns(store).where('task_key', '=', taskKey).executeTakeFirst()
  return row ? runOf(store, row) : null
}

/** The run that holds a concurrency key, if one does. */
export async function readActive(store: Store, activeKey: string): Promise<Run | null> {
  const row = await selectRuns(store).where('active_key', '=', activeKey).executeTakeFirst()
  return row ? runOf(store, row) : null
}

type RunRow = Awaited<ReturnType<ReturnType<typeof selectRuns>['executeTakeFirstOrThrow']>>

export function runOf(store: Store, row: RunRow): Run {
  const at = (value: unknown) => store.readInstant(value)
  return {
    taskKey: row.task_key,
    task: row.task_name,
    windowStart: at(row.window_start),
    windowEnd: at(row.window_end),
    windowZone: row.window_zone,
    status: row.status satisfies Status,
    availableAt: at(row.available_at)!,
    concurrencyKey: row.concurrency_key,
    attempt: row.attempt,
    maxAttempts: row.max_attempts,
    fence: BigInt(row.fence),
    instanceId: row.instance_id,
    host: row.host,
    pid: row.pid === null ? null : Number(row.pid),
    processIdentity: row.process_identity,
    launcher: row.launcher,
    leaseSeconds: row.lease_seconds,
    startedAt: at(row.started_at),
    heartbeatAt: at(row.heartbeat_at),
    finishedAt: at(row.finished_at),
    createdAt: at(row.created_at)!,
    cancelRequestedAt: at(row.cancel_requested_at),
    failureReason: row.failure_reason satisfies FailureReason | null,
    exitCode: row.exit_code,
    error: row.error,
    outputTail: row.output_tail,
    leaseOver: Number(row.lease_over) === 1,
    due: Number(row.due) === 1,
  }
}

/**
 * The first schema: runs, attempts, fences, tasks, and the views of operators.
 * Frozen once released: literal names, nothing imported from the store or the model. Each statement can be run again,
 * since MySQL and MariaDB commit every one of them by itself.
 */
import { sql } from 'kysely'
import type { MigrationContext } from './context.ts'

export const name = '0001-ledger'

export async function up(context: MigrationContext): Promise<void> {
  await createRuns(context)
  await createAttempts(context)
  await createFencesAndTasks(context)
  await createHistoryViews(context)
  await createStatusViews(context)
}

async function createRuns({ db, ddl, table }: MigrationContext): Promise<void> {
  await sql`
    create table if not exists ${table('task_runs')} (
      task_key ${ddl.key(200)} not null primary key,
      task_name ${ddl.key(100)} not null,
      queue ${ddl.key(100)} default 'default' not null,
      priority ${ddl.integer} default 0 not null,
      window_start ${ddl.instant},
      window_end ${ddl.instant},
      window_zone ${ddl.key(64)},
      status ${ddl.key(10)} not null,
      available_at ${ddl.instant} not null,
      concurrency_key ${ddl.key(200)},
      active_key ${ddl.key(220)},
      attempt ${ddl.integer} default 0 not null,
      max_attempts ${ddl.integer} not null,
      fence ${ddl.bigint} default 0 not null,
      instance_id ${ddl.key(36)},
      host ${ddl.key(255)},
      pid ${ddl.bigint},
      process_identity ${ddl.key(200)},
      launcher ${ddl.key(100)},
      lease_seconds ${ddl.double},
      started_at ${ddl.instant},
      heartbeat_at ${ddl.instant},
      finished_at ${ddl.instant},
      created_at ${ddl.instant} not null,
      cancel_requested_at ${ddl.instant},
      failure_reason ${ddl.key(10)},
      exit_code ${ddl.integer},
      error ${ddl.text},
      output_tail ${ddl.text},
      payload ${ddl.json},
      result ${ddl.json},
      constraint ${ddl.constraint('task_runs_status')} check (status in ('pending', 'processing', 'completed', 'failed')),
      constraint ${ddl.constraint('task_runs_owned')} check (status <> 'processing' or
        (instance_id is not null and started_at is not null and heartbeat_at is not null and lease_seconds is not null and attempt > 0)),
      constraint ${ddl.constraint('task_runs_active')} check (active_key is null or status = 'processing'),
      constraint ${ddl.constraint('task_runs_finished')} check ((status in ('completed', 'failed')) = (finished_at is not null)),
      constraint ${ddl.constraint('task_runs_reason')} check ((status = 'failed') = (failure_reason is not null)),
      constraint ${ddl.constraint('task_runs_reasons')} check (failure_reason in ('error', 'exit', 'signal', 'timeout', 'lost', 'cancelled')),
      constraint ${ddl.constraint('task_runs_attempts')} check (attempt >= 0 and attempt <= max_attempts),
      constraint ${ddl.constraint('task_runs_lease')} check (lease_seconds > 0)
    ) ${ddl.tableOptions}`.execute(db)
  // The index that decides overlap, against a hand-typed UPDATE as well.
  await ddl.createIndex(db, { name: 'task_runs_active_key', table: 'task_runs', columns: ['active_key'], unique: true, where: sql`active_key is not null` })
  // The state is not in it, and runs without a window are not: the fewer indexes a move touches, the more runs a queue does.
  await ddl.createIndex(db, { name: 'task_runs_task_name', table: 'task_runs', columns: ['task_name', 'window_start'], where: sql`window_start is not null` })
  // What can still move, and what an operator looks for first: few rows, however long the history. Heartbeats touch none of its columns.
  await ddl.createIndex(db, { name: 'task_runs_status', table: 'task_runs', columns: ['status', 'task_name', 'available_at'], where: sql`status in ('pending', 'processing', 'failed')` })
  await ddl.createIndex(db, { name: 'task_runs_created_at', table: 'task_runs', columns: ['created_at'] })
}

async function createAttempts({ db, ddl, table }: MigrationContext): Promise<void> {
  await sql`
    create table if not exists ${table('task_attempts')} (
      id ${ddl.numberedKey},
      task_key ${ddl.key(200)} not null,
      task_name ${ddl.key(100)} not null,
      window_start ${ddl.instant},
      window_end ${ddl.instant},
      window_zone ${ddl.key(64)},
      attempt ${ddl.integer},
      outcome ${ddl.key(10)} not null,
      reason ${ddl.key(12)},
      instance_id ${ddl.key(36)},
      host ${ddl.key(255)},
      pid ${ddl.bigint},
      launcher ${ddl.key(100)},
      fence ${ddl.bigint},
      started_at ${ddl.instant},
      heartbeat_at ${ddl.instant},
      ended_at ${ddl.instant} not null,
      exit_code ${ddl.integer},
      error ${ddl.text},
      output_tail ${ddl.text},
      held_by_key ${ddl.key(200)},
      held_by_instance ${ddl.key(36)},
      held_by_host ${ddl.key(255)},
      held_by_pid ${ddl.bigint},
      held_by_launcher ${ddl.key(100)},
      held_since ${ddl.instant},
      constraint ${ddl.constraint('task_attempts_outcome')} check (outcome in ('failed', 'lost', 'released', 'cancelled', 'reopened', 'conflict'))
    ) ${ddl.tableOptions}`.execute(db)
  await ddl.createIndex(db, { name: 'task_attempts_task_key', table: 'task_attempts', columns: ['task_key', 'id'] })
  await ddl.createIndex(db, { name: 'task_attempts_task_name', table: 'task_attempts', columns: ['task_name', 'ended_at'] })
  await ddl.createIndex(db, { name: 'task_attempts_ended_at', table: 'task_attempts', columns: ['ended_at'] })
}

async function createFencesAndTasks({ db, ddl, table }: MigrationContext): Promise<void> {
  await sql`
    create table if not exists ${table('task_fences')} (
      scope ${ddl.key(200)} not null primary key,
      counter ${ddl.bigint} not null
    ) ${ddl.tableOptions}`.execute(db)
  await sql`
    create table if not exists ${table('tasks')} (
      task_name ${ddl.key(100)} not null primary key,
      schedule ${ddl.key(200)},
      zone ${ddl.key(64)},
      overlap ${ddl.key(10)},
      grace_seconds ${ddl.double},
      paused_at ${ddl.instant},
      pruned_before ${ddl.instant}
    ) ${ddl.tableOptions}`.execute(db)
}

async function createHistoryViews({ db, ddl, table, now, secondsBetween }: MigrationContext): Promise<void> {
  const started = sql.ref('started_at')
  await ddl.createView(db, 'task_run_history', sql`
    select task_key, task_name, window_start, window_end, window_zone, attempt, status as outcome, null as reason,
      instance_id, host, pid, launcher, fence, started_at, heartbeat_at, finished_at as ended_at,
      ${secondsBetween(started, sql`coalesce(finished_at, ${now()})`)} as duration_seconds, exit_code, error, output_tail,
      null as held_by_key, null as held_by_instance, null as held_by_host, null as held_by_pid, null as held_by_launcher, null as held_since
    from ${table('task_runs')} where status in ('processing', 'completed')
    union all
    select task_key, task_name, window_start, window_end, window_zone, attempt, outcome, reason,
      instance_id, host, pid, launcher, fence, started_at, heartbeat_at, ended_at,
      ${secondsBetween(started, sql.ref('ended_at'))} as duration_seconds, exit_code, error, output_tail,
      held_by_key, held_by_instance, held_by_host, held_by_pid, held_by_launcher, held_since
    from ${table('task_attempts')}`)
  await ddl.createView(db, 'task_conflicts', sql`
    select ended_at as at, task_name, task_key, reason, instance_id, host, pid, launcher,
      held_by_key, held_by_instance, held_by_host, held_by_pid, held_by_launcher, held_since
    from ${table('task_attempts')} where outcome = 'conflict'`)
}

async function createStatusViews({ db, ddl, table, now, plusSeconds, secondsBetween }: MigrationContext): Promise<void> {
  const leaseEnd = plusSeconds(sql.ref('heartbeat_at'), sql.ref('lease_seconds'))
  await ddl.createView(db, 'stale_task_runs', sql`
    select task_key, task_name, attempt, max_attempts, instance_id, host, pid, launcher, started_at, heartbeat_at,
      lease_seconds, ${leaseEnd} as lease_ended_at, ${secondsBetween(leaseEnd, now())} as seconds_overdue
    from ${table('task_runs')} where status = 'processing' and ${leaseEnd} < ${now()}`)
  await ddl.createView(db, 'task_status', sql`
    select t.task_name, t.last_success_at, t.last_failure_at, t.running, t.pending,
      (select count(*) from ${table('task_runs')} f where f.task_name = t.task_name and f.status = 'failed'
        and (t.last_success_at is null or f.finished_at > t.last_success_at)) as failures_in_a_row,
      t.next_due_at
    from (
      select task_name,
        max(case when status = 'completed' then finished_at end) as last_success_at,
        max(case when status = 'failed' then finished_at end) as last_failure_at,
        count(case when status = 'processing' then 1 end) as running,
        count(case when status = 'pending' then 1 end) as pending,
        max(window_end) as next_due_at
      from ${table('task_runs')} group by task_name
    ) t`)
}

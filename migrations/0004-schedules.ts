/**
 * What each task's windows are: catch-up, from when on they are expected, how far they are accounted for, who launches
 * the task by which schedule, and totals that outlive pruning.
 * Frozen once released: literal names, nothing imported from the store or the model. Each statement can be run again,
 * since MySQL and MariaDB commit every one of them by itself.
 */
import { sql } from 'kysely'
import type { MigrationContext } from './context.ts'

export const name = '0004-schedules'

export async function up(context: MigrationContext): Promise<void> {
  await describeTasks(context)
  await createLaunchers(context)
  await createTotals(context)
}

async function describeTasks({ db, ddl }: MigrationContext): Promise<void> {
  await ddl.addColumn(db, 'tasks', 'catch_up', sql`${ddl.key(10)} check (catch_up in ('none', 'latest', 'all'))`)
  await ddl.addColumn(db, 'tasks', 'catch_up_max_age_seconds', ddl.double)
  await ddl.addColumn(db, 'tasks', 'catch_up_max_count', ddl.integer)
  await ddl.addColumn(db, 'tasks', 'expected_since', ddl.instant)
  await ddl.addColumn(db, 'tasks', 'accounted_before', ddl.instant)
  await ddl.addColumn(db, 'tasks', 'schedule_set_at', ddl.instant)
  await ddl.addColumn(db, 'tasks', 'overlap_set_at', ddl.instant)
}

async function createLaunchers({ db, ddl, table }: MigrationContext): Promise<void> {
  await sql`
    create table if not exists ${table('task_launchers')} (
      task_name ${ddl.key(100)} not null,
      host ${ddl.key(255)} not null,
      launcher ${ddl.key(100)} not null,
      schedule ${ddl.key(200)} not null,
      zone ${ddl.key(64)} not null,
      first_seen_at ${ddl.instant} not null,
      last_seen_at ${ddl.instant} not null,
      primary key (task_name, host, launcher, schedule, zone)
    ) ${ddl.tableOptions}`.execute(db)
}

/** Endings counted once, so that they stay counted when their rows are pruned. The row with an empty task says how far. */
async function createTotals({ db, ddl, table }: MigrationContext): Promise<void> {
  await sql`
    create table if not exists ${table('task_totals')} (
      task_name ${ddl.key(100)} not null,
      ends ${ddl.key(10)} not null,
      outcome ${ddl.key(10)} not null,
      reason ${ddl.key(12)} not null,
      endings ${ddl.bigint} not null,
      seconds ${ddl.double} not null,
      counted_before ${ddl.instant},
      primary key (task_name, ends, outcome, reason)
    ) ${ddl.tableOptions}`.execute(db)
}

/**
 * What operators do: a line for each action, who paused a task and why, and an identity for each launch that lost.
 * Frozen once released: literal names, nothing imported from the store or the model. Each statement can be run again,
 * since MySQL and MariaDB commit every one of them by itself.
 */
import { sql } from 'kysely'
import type { MigrationContext } from './context.ts'

export const name = '0003-actions'

export async function up(context: MigrationContext): Promise<void> {
  await createActions(context)
  await tellWhoPaused(context)
  await nameLaunches(context)
}

async function createActions({ db, ddl, table }: MigrationContext): Promise<void> {
  await sql`
    create table if not exists ${table('task_actions')} (
      action_id ${ddl.key(36)} not null primary key,
      action ${ddl.key(10)} not null,
      task_name ${ddl.key(100)},
      task_key ${ddl.key(200)},
      because ${ddl.text},
      details ${ddl.text},
      acted_at ${ddl.instant} not null,
      acted_by ${ddl.key(255)} not null,
      host ${ddl.key(255)},
      pid ${ddl.bigint},
      launcher ${ddl.key(100)},
      constraint ${ddl.constraint('task_actions_action')} check (action in ('retry', 'cancel', 'pause', 'resume', 'release', 'set', 'backfill', 'prune'))
    ) ${ddl.tableOptions}`.execute(db)
  await ddl.createIndex(db, { name: 'task_actions_task_key', table: 'task_actions', columns: ['task_key', 'acted_at'] })
  await ddl.createIndex(db, { name: 'task_actions_task_name', table: 'task_actions', columns: ['task_name', 'acted_at'] })
}

async function tellWhoPaused({ db, ddl }: MigrationContext): Promise<void> {
  await ddl.addColumn(db, 'tasks', 'paused_by', ddl.key(255))
  await ddl.addColumn(db, 'tasks', 'paused_because', ddl.text)
}

/** So that a conflict whose answer was lost is recorded once, however often it is sent. */
async function nameLaunches({ db, ddl }: MigrationContext): Promise<void> {
  await ddl.addColumn(db, 'task_attempts', 'launch_id', ddl.key(36))
  await ddl.createIndex(db, { name: 'task_attempts_launch_id', table: 'task_attempts', columns: ['launch_id'], unique: true, where: sql`launch_id is not null` })
}

/**
 * The finished runs of a task by their ending: the oldest for retention, the newest for its last success and what failed since.
 * Frozen once released: literal names, nothing imported from the store or the model. Each statement can be run again,
 * since MySQL and MariaDB commit every one of them by itself.
 */
import { sql } from 'kysely'
import type { MigrationContext } from './context.ts'

export const name = '0005-retention'

export async function up({ db, ddl }: MigrationContext): Promise<void> {
  await ddl.createIndex(db, { name: 'task_runs_finished_at', table: 'task_runs', columns: ['task_name', 'status', 'finished_at'], where: sql`status in ('completed', 'failed')` })
}

/**
 * The queue: what may be claimed now stands in an index of its own, beside those that wait for their key or their time.
 * Frozen once released: literal names, nothing imported from the store or the model. Each statement can be run again,
 * since MySQL and MariaDB commit every one of them by itself.
 */
import { sql } from 'kysely'
import type { MigrationContext } from './context.ts'

export const name = '0006-queue'

export async function up(context: MigrationContext): Promise<void> {
  await addColumns(context)
  await addIndexes(context)
  await queueThePending(context)
}

/**
 * A pending run stands in line (`ready_queue`, with a concurrency key also `waiting_key`), in line behind a busy key
 * (`waiting_key` alone) or has its time still to come (`due_at`). In every other state all three are null.
 */
async function addColumns({ db, ddl }: MigrationContext): Promise<void> {
  const columns = {
    position: sql`${ddl.bigint} default 0 not null`,
    ready_queue: ddl.key(100),
    waiting_key: ddl.key(200),
    due_at: ddl.instant,
    concurrency_limit: sql`${ddl.integer} default 1 not null`,
    backoff_seconds: ddl.double,
    timeout_seconds: ddl.double,
  }
  for (const [column, definition] of Object.entries(columns)) await ddl.addColumn(db, 'task_runs', column, definition)
}

async function addIndexes({ db, ddl }: MigrationContext): Promise<void> {
  await ddl.createIndex(db, { name: 'task_runs_ready_queue', table: 'task_runs', columns: ['ready_queue', 'priority', 'position'], where: sql`ready_queue is not null` })
  await ddl.createIndex(db, { name: 'task_runs_waiting_key', table: 'task_runs', columns: ['waiting_key', 'priority', 'position'], where: sql`waiting_key is not null` })
  await ddl.createIndex(db, { name: 'task_runs_due_at', table: 'task_runs', columns: ['due_at'], where: sql`due_at is not null` })
}

/** What an earlier version left pending is put in line when its time has come, like any other. */
async function queueThePending({ db, table }: MigrationContext): Promise<void> {
  await sql`
    update ${table('task_runs')} set due_at = available_at
    where status = 'pending' and ready_queue is null and waiting_key is null and due_at is null`.execute(db)
}

/** Reads what is known of tasks, and who launches them. */
import { sql, type Selectable } from 'kysely'
import { DEFAULT_CATCH_UP_AGE_MS, DEFAULT_CATCH_UP_COUNT, DEFAULT_GRACE_MS, type Task, type TaskLauncher } from '../model/task.ts'
import type { Db, Store, Tasks } from './tables.ts'

export async function readTask(store: Store, name: string, db: Db = store.db): Promise<Task | null> {
  const row = await db.selectFrom('tasks').selectAll().where('task_name', '=', name).executeTakeFirst()
  return row ? taskOf(store, row) : null
}

/** In the order of their names. @param only this task alone */
export async function listTasks(store: Store, only?: string): Promise<Task[]> {
  const query = store.db.selectFrom('tasks').selectAll().orderBy('task_name')
  const rows = await (only === undefined ? query : query.where('task_name', '=', only)).execute()
  return rows.map((row) => taskOf(store, row))
}

export async function listLaunchers(store: Store, only?: string): Promise<TaskLauncher[]> {
  const query = store.db.selectFrom('task_launchers').selectAll().orderBy('task_name').orderBy('last_seen_at', 'desc')
  const rows = await (only === undefined ? query : query.where('task_name', '=', only)).execute()
  return rows.map((row) => ({
    task: row.task_name,
    host: row.host,
    launcher: row.launcher,
    schedule: row.schedule,
    zone: row.zone,
    firstSeenAt: store.readInstant(row.first_seen_at)!,
    lastSeenAt: store.readInstant(row.last_seen_at)!,
  }))
}

/** The database's clock. */
export async function readNow(store: Store): Promise<Date> {
  const { rows } = await sql<{ now: unknown }>`select ${store.now()} as now`.execute(store.db)
  return store.readInstant(rows[0]!.now)!
}

export function taskOf(store: Store, row: Selectable<Tasks>): Task {
  const at = (value: unknown) => store.readInstant(value)
  const ms = (seconds: number | null, otherwise: number) => (seconds === null ? otherwise : seconds * 1000)
  return {
    name: row.task_name,
    schedule: row.schedule,
    zone: row.zone,
    overlap: row.overlap,
    graceMs: ms(row.grace_seconds, DEFAULT_GRACE_MS),
    catchUp: row.catch_up ?? 'none',
    catchUpMaxAgeMs: ms(row.catch_up_max_age_seconds, DEFAULT_CATCH_UP_AGE_MS),
    catchUpMaxCount: row.catch_up_max_count ?? DEFAULT_CATCH_UP_COUNT,
    expectedSince: at(row.expected_since),
    accountedBefore: at(row.accounted_before),
    scheduleSetAt: at(row.schedule_set_at),
    overlapSetAt: at(row.overlap_set_at),
    pausedAt: at(row.paused_at),
    pausedBy: row.paused_by,
    pausedBecause: row.paused_because,
    prunedBefore: at(row.pruned_before),
  }
}

/** A history that is long over: runs of hourly windows, written as if they had run then. */
import { sql } from 'kysely'
import type { TaskRuns } from '../../src/store/tables.ts'
import type { Store } from '../../src/store/tables.ts'
import type { Insertable } from 'kysely'

export const HOUR_MS = 3_600_000
export const OLD = new Date('2026-03-01T00:00:00Z')

export function windowKey(task: string, nth: number): string {
  return `${task}:w${String(nth).padStart(6, '0')}`
}

export function windowOf(nth: number): { start: Date; end: Date; zone: string } {
  const start = new Date(OLD.getTime() + nth * HOUR_MS)
  return { start, end: new Date(start.getTime() + HOUR_MS), zone: 'UTC' }
}

/** Completed runs of the windows `from` to `to` (both included) since OLD, each ended half an hour after its window began. */
export async function oldWindows(store: Store, task: string, from: number, to: number, more: Partial<Insertable<TaskRuns>> = {}): Promise<void> {
  const rows = Array.from({ length: to - from + 1 }, (_, i) => oldRun(store, task, windowKey(task, from + i), windowOf(from + i), more))
  for (let at = 0; at < rows.length; at += 500) await store.statement((db) => db.insertInto('task_runs').values(rows.slice(at, at + 500)).execute())
}

/** One that ended in OLD, without a window. */
export async function oldKey(store: Store, task: string, label: string, more: Partial<Insertable<TaskRuns>> = {}): Promise<string> {
  const key = `${task}:${label}`
  await store.statement((db) => db.insertInto('task_runs').values(oldRun(store, task, key, null, more)).execute())
  return key
}

function oldRun(store: Store, task: string, key: string, window: ReturnType<typeof windowOf> | null, more: Partial<Insertable<TaskRuns>>): Insertable<TaskRuns> {
  const began = window?.start ?? OLD
  const at = (date: Date | undefined) => (date ? store.instant(date) : sql`null`)
  return {
    task_key: key, task_name: task, window_start: at(window?.start), window_end: at(window?.end), window_zone: window?.zone ?? null, status: 'completed',
    available_at: at(began), created_at: at(began), started_at: at(began), heartbeat_at: at(began), finished_at: at(new Date(began.getTime() + HOUR_MS / 2)),
    attempt: 1, max_attempts: 3, fence: 1n, instance_id: 'then', host: 'host-a', pid: 7, launcher: 'cron', lease_seconds: 60, concurrency_key: task, ...more,
  }
}

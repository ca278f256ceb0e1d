/** Runs of windows in any state and of any age, written past the ledger: a history to ask questions about. */
import { sql } from 'kysely'
import type { Status } from '../../src/model/states.ts'
import { windowAt } from '../../src/model/window/window.ts'
import type { Schedule } from '../../src/model/window/schedule.ts'
import type { Store } from '../../src/store/tables.ts'

export interface Past {
  readonly status?: Status
  /** After the beginning of the window. */
  readonly startedSeconds?: number
  readonly tookSeconds?: number
  readonly reason?: 'exit' | 'lost' | 'cancelled'
  /** How long ago the owner renewed its lease of a minute. */
  readonly silentSeconds?: number
  readonly attempt?: number
}

/** The run of the window that begins at or before the instant. Completed, begun a second after its beginning, in two seconds. */
export async function pastRun(store: Store, task: string, schedule: Schedule, at: Date, past: Past = {}): Promise<string> {
  const { status = 'completed', startedSeconds = 1, tookSeconds = 2, reason = 'exit', silentSeconds = 0, attempt = status === 'pending' ? 0 : 1 } = past
  const window = windowAt(schedule, at)!
  const started = new Date(window.start.getTime() + startedSeconds * 1000)
  const isOver = status === 'completed' || status === 'failed'
  const taskKey = `${task}:${window.label}`
  await store.db
    .insertInto('task_runs')
    .values({
      task_key: taskKey,
      task_name: task,
      window_start: store.instant(window.start),
      window_end: store.instant(window.end),
      window_zone: window.zone,
      status,
      available_at: store.instant(window.start),
      created_at: store.instant(window.start),
      attempt,
      max_attempts: 3,
      fence: 1n,
      ...(status !== 'pending' && { instance_id: 'i', host: 'host-a', pid: 1, started_at: store.instant(started), heartbeat_at: store.plusSeconds(store.now(), sql.lit(-silentSeconds)), lease_seconds: 60 }),
      ...(isOver && { finished_at: store.instant(new Date(started.getTime() + tookSeconds * 1000)) }),
      ...(status === 'failed' && { failure_reason: reason, exit_code: 3 }),
    })
    .execute()
  return taskKey
}

export async function pastConflict(store: Store, taskKey: string, reason: string): Promise<void> {
  await store.db.insertInto('task_attempts').values({ task_key: taskKey, task_name: taskKey.slice(0, taskKey.indexOf(':')), outcome: 'conflict', reason, ended_at: store.now() }).execute()
}

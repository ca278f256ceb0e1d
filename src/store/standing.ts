/** Reads how a task stands: what holds it up, what of it is not over, how it ended last, which launches lost. */
import type { HistoryLine, Run } from '../model/run.ts'
import { historyLine } from './list-runs.ts'
import { runOf, selectRuns } from './read-run.ts'
import type { Store } from './tables.ts'

export interface Pause {
  readonly at: Date
  readonly by: string | null
  readonly because: string | null
}

export async function readPause(store: Store, task: string): Promise<Pause | null> {
  const row = await store.db.selectFrom('tasks').select(['paused_at', 'paused_by', 'paused_because']).where('task_name', '=', task).executeTakeFirst()
  const at = row ? store.readInstant(row.paused_at) : null
  return at && { at, by: row!.paused_by, because: row!.paused_because }
}

/** Runs of a task in one state: the longest due first of what waits, the oldest window first of what is processing, the newest end first of what is over. */
export async function runsOf(store: Store, task: string, status: Run['status'], limit: number): Promise<Run[]> {
  const runs = selectRuns(store).where('task_name', '=', task).where('status', '=', status).limit(limit)
  const isOver = status === 'completed' || status === 'failed'
  const rows = await (isOver ? runs.orderBy('finished_at', 'desc') : runs.orderBy(status === 'pending' ? 'available_at' : 'window_start')).execute()
  return rows.map((row) => runOf(store, row))
}

/** The newest launches that lost, of a run or of a whole task; the newest first. */
export async function conflictsOf(store: Store, of: { readonly taskKey: string } | { readonly task: string }, limit: number): Promise<HistoryLine[]> {
  const lines = store.db.selectFrom('task_attempts').selectAll().where('outcome', '=', 'conflict').orderBy('ended_at', 'desc').limit(limit)
  const rows = await ('taskKey' in of ? lines.where('task_key', '=', of.taskKey) : lines.where('task_name', '=', of.task)).execute()
  return rows.map((row) => historyLine(store, row))
}

/** The attempt of a run that ended last without completing it. */
export async function lastAttemptOf(store: Store, taskKey: string): Promise<HistoryLine | null> {
  const row = await store.db.selectFrom('task_attempts').selectAll().where('task_key', '=', taskKey).where('outcome', '<>', 'conflict').orderBy('id', 'desc').limit(1).executeTakeFirst()
  return row ? historyLine(store, row) : null
}

/** Reads the finished runs of a task in the order in which they ended, a page at a time, and what of the task is newest. */
import { sql } from 'kysely'
import type { Finished, Kept } from '../model/retention.ts'
import { isStill } from './line.ts'
import { namesOfRuns } from './run-names.ts'
import type { Db, Store } from './tables.ts'

export interface FinishedRun extends Finished {
  readonly windowEnd: Date | null
  readonly scope: string
  readonly finishedAt: Date
}

export type FinalStatus = 'completed' | 'failed'

/** Every task that has a run or a line of history; each is found by one step down an index, however many rows it has. */
export async function taskNames(store: Store): Promise<string[]> {
  const names = new Set(await namesOfRuns(store))
  for (let after = ''; ; ) {
    const row = await store.db.selectFrom('task_attempts').select('task_name').where('task_name', '>', after).orderBy('task_name').limit(1).executeTakeFirst()
    if (!row) return [...names].toSorted()
    names.add((after = row.task_name))
  }
}

/** Runs of a task that ended from `from` on and before `before`, the oldest first. */
export async function readFinished(store: Store, task: string, status: FinalStatus, before: Date, from: Date | null, limit: number): Promise<FinishedRun[]> {
  const rows = await store.db
    .selectFrom('task_runs')
    .select(['task_key', 'task_name', 'window_start', 'window_end', 'concurrency_key', 'finished_at'])
    .where('task_name', '=', task)
    .where('status', '=', status)
    .where(sql<boolean>`finished_at < ${store.instant(before)}`)
    .$if(from !== null, (query) => query.where(sql<boolean>`finished_at >= ${store.instant(from!)}`))
    .orderBy('finished_at')
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    taskKey: row.task_key,
    task: row.task_name,
    windowStart: store.readInstant(row.window_start),
    windowEnd: store.readInstant(row.window_end),
    scope: row.concurrency_key ?? row.task_name,
    finishedAt: store.readInstant(row.finished_at)!,
  }))
}

/** What of a task stays whatever its age. */
export async function newestOf(store: Store, task: string): Promise<Kept> {
  const { db } = store
  const last = await db.selectFrom('task_runs').select('task_key').where('task_name', '=', task).where('status', '=', 'completed').orderBy('finished_at', 'desc').limit(1).executeTakeFirst()
  const windowsFrom = (await newestWindow(store, db, task, 'completed')) ?? (await newestWindow(store, db, task))
  return { lastCompleted: last?.task_key ?? null, windowsFrom }
}

async function newestWindow(store: Store, db: Db, task: string, status?: FinalStatus): Promise<Date | null> {
  const row = await db
    .selectFrom('task_runs')
    .select('window_start')
    .where('task_name', '=', task)
    .$if(status !== undefined, (query) => query.where(isStill(status!)))
    .where('window_start', 'is not', null)
    .orderBy('window_start', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row ? store.readInstant(row.window_start) : null
}

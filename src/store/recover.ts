/** Closes the attempts of one task whose owner is gone, so that the next launch of the task can take the runs up. */
import { sql } from 'kysely'
import { closeDead, type DeathCheck } from './lost.ts'
import { isDue, runOf, selectRuns } from './read-run.ts'
import type { Run } from '../model/run.ts'
import type { Store } from './tables.ts'

/**
 * The pending runs of a task whose time has come, the oldest window first and those without one last, after attempts
 * whose lease ran out or whose owner is proven dead were closed.
 */
export async function dueRuns(store: Store, task: string, isDead: DeathCheck, limit: number): Promise<Run[]> {
  await closeTheDead(store, task, isDead)
  const rows = await selectRuns(store)
    .where('task_name', '=', task)
    .where(isDue(store))
    .orderBy(sql`case when window_start is null then 1 else 0 end`)
    .orderBy('window_start')
    .orderBy('available_at')
    .orderBy('task_key')
    .limit(limit)
    .execute()
  return rows.map((row) => runOf(store, row))
}

async function closeTheDead(store: Store, task: string, isDead: DeathCheck): Promise<void> {
  const rows = await selectRuns(store).where('task_name', '=', task).where('status', '=', 'processing').execute()
  const dead = rows.map((row) => runOf(store, row)).filter((run) => run.leaseOver || isDead(run))
  for (const run of dead) await store.transaction((tx) => closeDead(store, tx, run))
}

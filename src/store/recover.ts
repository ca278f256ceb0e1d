/** Closes the attempts of one task whose owner is gone, so that the next launch of the task can take the runs up. */
import { closeDead, type DeathCheck } from './lost.ts'
import { isDue, runOf, selectRuns } from './read-run.ts'
import type { Run } from '../model/run.ts'
import type { Store } from './tables.ts'

/**
 * The pending runs of a task whose time has come, the oldest window first, after attempts whose lease ran out or whose
 * owner is proven dead were closed. One query when nobody died.
 */
export async function dueRuns(store: Store, task: string, isDead: DeathCheck, limit: number): Promise<Run[]> {
  const found = await readLive(store, task, limit)
  const dead = found.filter((run) => run.status === 'processing' && (run.leaseOver || isDead(run)))
  if (dead.length === 0) return found.filter(({ due }) => due)
  for (const run of dead) await store.transaction((tx) => closeDead(store, tx, run))
  return (await readLive(store, task, limit)).filter(({ due }) => due)
}

async function readLive(store: Store, task: string, limit: number): Promise<Run[]> {
  const rows = await selectRuns(store)
    .where('task_name', '=', task)
    .where((eb) => eb.or([eb('status', '=', 'processing'), isDue(store)]))
    .orderBy('window_start')
    .orderBy('available_at')
    .orderBy('task_key')
    .limit(limit)
    .execute()
  return rows.map((row) => runOf(store, row))
}

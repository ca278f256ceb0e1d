/** The names of all tasks that have a run, by one step down the primary key each, however many runs they have. */
import type { Store } from './tables.ts'

/** In their order. A key begins with the task's name and a colon, and after the colon comes the semicolon. */
export async function namesOfRuns(store: Store): Promise<string[]> {
  const names = new Set<string>()
  for (let after = ''; ; ) {
    const row = await store.db.selectFrom('task_runs').select(['task_key', 'task_name']).where('task_key', '>', after).orderBy('task_key').limit(1).executeTakeFirst()
    if (!row) return [...names].toSorted()
    names.add(row.task_name)
    after = row.task_key.startsWith(`${row.task_name}:`) ? `${row.task_name};` : row.task_key // Typed in by hand.
  }
}

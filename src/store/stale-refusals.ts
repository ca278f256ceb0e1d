/** Launches that lost long ago and whose key has no run: nothing else would ever take their lines away. */
import { sql } from 'kysely'
import type { Store } from './tables.ts'

export interface Refusal {
  readonly id: number
  readonly taskKey: string
  readonly endedAt: Date
}

/** Launches of a task that lost from `from` on and before `before`, with a run or without, the oldest first. */
export async function readRefusals(store: Store, task: string, before: Date, from: Date | null, limit: number): Promise<Refusal[]> {
  const rows = await store.db
    .selectFrom('task_attempts')
    .select(['id', 'task_key', 'ended_at'])
    .where('task_name', '=', task)
    .where('outcome', '=', 'conflict')
    .where(sql<boolean>`ended_at < ${store.instant(before)}`)
    .$if(from !== null, (query) => query.where(sql<boolean>`ended_at >= ${store.instant(from!)}`))
    .orderBy('ended_at')
    .limit(limit)
    .execute()
  return rows.map(({ id, task_key, ended_at }) => ({ id, taskKey: task_key, endedAt: store.readInstant(ended_at)! }))
}

/** The ids of those whose key has no run. */
export async function withoutRun(store: Store, page: readonly Refusal[]): Promise<number[]> {
  const keys = [...new Set(page.map(({ taskKey }) => taskKey))]
  const found = await store.db.selectFrom('task_runs').select('task_key').where('task_key', 'in', keys).execute()
  const present = new Set(found.map(({ task_key }) => task_key))
  return page.filter(({ taskKey }) => !present.has(taskKey)).map(({ id }) => id)
}

/** In the order of their ids, past lines that others hold. @returns how many went */
export function takeRefusals(store: Store, ids: readonly number[]): Promise<number> {
  return store.transaction(async (tx) => {
    const held = await store.skipLocked(tx.selectFrom('task_attempts').select('id').where('id', 'in', ids).orderBy('id')).execute()
    if (held.length === 0) return 0
    return store.deleteBy(tx, { table: 'task_attempts', column: 'id', index: 'primary', values: held.map(({ id }) => id) })
  })
}

/** Reads what operators did, in the order they did it. */
import type { RecordedAction } from '../model/action.ts'
import type { Store } from './tables.ts'

export interface ActionFilter {
  readonly task?: string | undefined
  readonly taskKey?: string | undefined
  /** The newest so many. */
  readonly limit: number
}

export async function listActions(store: Store, { task, taskKey, limit }: ActionFilter): Promise<RecordedAction[]> {
  let query = store.db.selectFrom('task_actions').selectAll().orderBy('acted_at', 'desc').orderBy('action_id', 'desc').limit(limit)
  if (task !== undefined) query = query.where('task_name', '=', task)
  if (taskKey !== undefined) query = query.where('task_key', '=', taskKey)
  const rows = await query.execute()
  return rows.toReversed().map((row) => ({
    id: row.action_id,
    name: row.action,
    task: row.task_name,
    taskKey: row.task_key,
    because: row.because,
    details: row.details,
    at: store.readInstant(row.acted_at)!,
    by: { user: row.acted_by, host: row.host ?? '', pid: Number(row.pid ?? 0), launcher: row.launcher ?? '' },
  }))
}

/** After a write whose outcome is unknown: whether this action was recorded, and so done. */
export async function wasRecorded(store: Store, actionId: string): Promise<boolean> {
  return (await store.db.selectFrom('task_actions').select('action_id').where('action_id', '=', actionId).executeTakeFirst()) !== undefined
}

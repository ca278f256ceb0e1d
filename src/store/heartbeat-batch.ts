/** Renews the leases of many runs of one instance in one statement, and says which of them are not ours any more. */
import type { Holder } from '../model/run.ts'
import type { Store } from './tables.ts'
import { isOneOf } from './transition-batch.ts'

/** @returns the keys of those that somebody else has, or that are over */
export async function heartbeatMany(store: Store, of: readonly Holder[]): Promise<Set<string>> {
  const { instanceId } = of[0]!
  const { numUpdatedRows } = await store.statement((db) =>
    db.updateTable('task_runs').set({ heartbeat_at: store.now() }).where(isOneOf(store, of)).where('instance_id', '=', instanceId).where('status', '=', 'processing').executeTakeFirstOrThrow(),
  )
  if (Number(numUpdatedRows) === of.length) return new Set()
  const rows = await store.db.selectFrom('task_runs').select('task_key').where(isOneOf(store, of)).where('instance_id', '=', instanceId).where('status', '=', 'processing').execute()
  const kept = new Set(rows.map((row) => row.task_key))
  return new Set(of.map(({ taskKey }) => taskKey).filter((key) => !kept.has(key)))
}

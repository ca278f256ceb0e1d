/** What the ledger believes an instance to hold. */
import type { Holder } from '../model/run.ts'
import type { Store } from './tables.ts'

export async function heldRuns(store: Store, instanceId: string): Promise<(Holder & { readonly task: string; readonly concurrencyKey: string | null })[]> {
  const rows = await store.db.selectFrom('task_runs').select(['task_key', 'task_name', 'attempt', 'fence', 'concurrency_key']).where('status', '=', 'processing').where('instance_id', '=', instanceId).execute()
  return rows.map((row) => ({ taskKey: row.task_key, task: row.task_name, instanceId, attempt: row.attempt, fence: BigInt(row.fence), concurrencyKey: row.concurrency_key }))
}

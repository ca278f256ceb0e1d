/** How many runs of each task can still move, and since when: from the partial index, however long the history. */
import { sql } from 'kysely'
import { isDue, leaseIsOver } from './read-run.ts'
import type { Store } from './tables.ts'

export interface OpenRuns {
  readonly pending: number
  readonly processing: number
  readonly expiredLeases: number
  /** Since when the run that has waited longest has been due. */
  readonly oldestPendingAt: Date | null
}

export async function openRuns(store: Store): Promise<Map<string, OpenRuns>> {
  const rows = await store.db
    .selectFrom('task_runs')
    .select(['task_name', sql<number | string>`count(case when status = 'pending' then 1 end)`.as('pending'), sql<number | string>`count(case when status = 'processing' then 1 end)`.as('processing')])
    .select([sql<number | string>`count(case when ${leaseIsOver(store)} then 1 end)`.as('expired'), sql<unknown>`min(case when ${isDue(store)} then available_at end)`.as('oldest')])
    .where(sql<boolean>`status in ('pending', 'processing')`)
    .groupBy('task_name')
    .execute()
  return new Map(rows.map((row) => [row.task_name, { pending: Number(row.pending), processing: Number(row.processing), expiredLeases: Number(row.expired), oldestPendingAt: store.readInstant(row.oldest) }]))
}

export async function doubtsByTask(store: Store): Promise<Map<string, number>> {
  const rows = await store.db.selectFrom('task_effects_in_doubt').select(['task_name', sql<number | string>`count(*)`.as('effects')]).groupBy('task_name').execute()
  return new Map(rows.map((row) => [row.task_name, Number(row.effects)]))
}

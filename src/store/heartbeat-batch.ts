/** Renews the leases of many runs of one instance in one statement, and says which of them are not ours any more, or are to stop. */
import { sql } from 'kysely'
import { nameOf, type Holder } from '../model/run.ts'
import { isStill } from './line.ts'
import type { Store } from './tables.ts'
import { isOneOf } from './transition-batch.ts'

/** Of those that were asked for; two attempts at one run may be among them. What is in neither was renewed like all the others. */
export interface Beats {
  /** Somebody else has them, or they are over. */
  readonly lost: ReadonlySet<Holder>
  /** Renewed as well, for the work to be stopped in: an operator asked for it. */
  readonly cancelled: ReadonlySet<Holder>
}

const ALL_WELL: Beats = { lost: new Set(), cancelled: new Set() }

export async function heartbeatMany(store: Store, of: readonly Holder[]): Promise<Beats> {
  const { instanceId } = of[0]!
  const { numUpdatedRows } = await store.statement((db) =>
    db.updateTable('task_runs').set({ heartbeat_at: store.now() }).where(isOneOf(store, of)).where('instance_id', '=', instanceId).where(isStill('processing')).executeTakeFirstOrThrow(),
  )
  const rows = await store.db
    .selectFrom('task_runs')
    .select(['task_key', 'fence'])
    .select(sql<number>`case when cancel_requested_at is null then 0 else 1 end`.as('cancelled'))
    .where(isOneOf(store, of))
    .where('instance_id', '=', instanceId)
    .where(isStill('processing'))
    .$if(Number(numUpdatedRows) === of.length, (query) => query.where('cancel_requested_at', 'is not', null))
    .execute()
  const ours = new Map(rows.map((row) => [nameOf({ taskKey: row.task_key, fence: BigInt(row.fence) }), Number(row.cancelled) === 1]))
  const cancelled = new Set(of.filter((holder) => ours.get(nameOf(holder)) === true))
  if (Number(numUpdatedRows) === of.length) return cancelled.size === 0 ? ALL_WELL : { lost: new Set(), cancelled }
  return { lost: new Set(of.filter((holder) => !ours.has(nameOf(holder)))), cancelled }
}

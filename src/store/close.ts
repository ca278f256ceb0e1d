/** What a holder may do with its run: renew the lease, complete it, fail it, give it back. Each says whether it was still the holder. */
import { sql } from 'kysely'
import type { Ending, Holder } from '../model/run.ts'
import type { FailureReason } from '../model/states.ts'
import type { Store } from './tables.ts'
import { transition } from './transition.ts'

/** Renews the lease from the database's now. Touches one unindexed column. @returns false when the row is no longer ours */
export async function heartbeat(store: Store, of: Holder): Promise<boolean> {
  const { numUpdatedRows } = await store.statement((db) =>
    db
      .updateTable('task_runs')
      .set({ heartbeat_at: store.now() })
      .where('task_key', '=', of.taskKey)
      .where('instance_id', '=', of.instanceId)
      .where('attempt', '=', of.attempt)
      .where('fence', '=', of.fence)
      .where('status', '=', 'processing')
      .executeTakeFirstOrThrow(),
  )
  return numUpdatedRows === 1n
}

/** One statement that commits by itself: the row carries its completing attempt, so history needs no other write. */
export function complete(store: Store, of: Holder, ending: Ending): Promise<boolean> {
  return store.statement((db) => transition(store, db, { move: 'complete', of, ending }))
}

/** @param retryInSeconds when the next attempt may begin; null when there is to be none */
export function fail(store: Store, of: Holder, reason: FailureReason, ending: Ending, retryInSeconds: number | null): Promise<boolean> {
  const later = retryInSeconds === null ? undefined : store.plusSeconds(store.now(), sql.lit(retryInSeconds))
  return store.transaction((tx) => transition(store, tx, { move: retryInSeconds === null ? 'fail' : 'retry', of, later, reason, ending }))
}

/** Gives the run back as if it had not been begun: the attempt is not counted. */
export function release(store: Store, of: Holder, ending: Ending): Promise<boolean> {
  return store.transaction((tx) => transition(store, tx, { move: 'release', of, set: { attempt: of.attempt - 1, available_at: store.now() }, ending }))
}

/** Whether the run is completed, and by this attempt: the run's row carries the attempt that completed it. */
export async function completedByUs(store: Store, of: Holder): Promise<boolean> {
  const run = await store.db
    .selectFrom('task_runs')
    .select('task_key')
    .where('task_key', '=', of.taskKey)
    .where('status', '=', 'completed')
    .where('instance_id', '=', of.instanceId)
    .where('attempt', '=', of.attempt)
    .where('fence', '=', of.fence)
    .executeTakeFirst()
  return run !== undefined
}

/**
 * After a write whose outcome is unknown (the connection died at COMMIT): whether the attempt is closed by us. An
 * attempt that did not complete has left its line.
 */
export async function closedByUs(store: Store, of: Holder): Promise<boolean> {
  if (await completedByUs(store, of)) return true
  const line = await store.db
    .selectFrom('task_attempts')
    .select('id')
    .where('task_key', '=', of.taskKey)
    .where('instance_id', '=', of.instanceId)
    .where('attempt', '=', of.attempt)
    .where('fence', '=', of.fence)
    .where('outcome', 'in', ['failed', 'released'])
    .executeTakeFirst()
  return line !== undefined
}

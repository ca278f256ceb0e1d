/** What a holder may do with its run: renew the lease, complete it, fail it, give it back. Each says whether it was still the holder. */
import { sql, type RawBuilder } from 'kysely'
import type { Ending, Holder } from '../model/run.ts'
import type { FailureReason } from '../model/states.ts'
import type { Store } from './tables.ts'
import { transition, type Transition } from './transition.ts'

/** What a heartbeat found: `cancelled` renews the lease as well, for the work to be stopped in; `lost`: the row is no longer ours. */
export type Beat = 'renewed' | 'cancelled' | 'lost'

/**
 * Renews the lease from the database's now. Touches one unindexed column. That a cancel was asked for is seen by a
 * second statement, so that the usual beat is one, on databases without RETURNING too.
 */
export async function heartbeat(store: Store, of: Holder): Promise<Beat> {
  if (await renew(store, of, sql<boolean>`cancel_requested_at is null`)) return 'renewed'
  return (await renew(store, of, sql<boolean>`cancel_requested_at is not null`)) ? 'cancelled' : 'lost'
}

async function renew(store: Store, of: Holder, onlyIf: RawBuilder<boolean>): Promise<boolean> {
  const { numUpdatedRows } = await store.statement((db) =>
    db
      .updateTable('task_runs')
      .set({ heartbeat_at: store.now() })
      .where('task_key', '=', of.taskKey)
      .where('instance_id', '=', of.instanceId)
      .where('attempt', '=', of.attempt)
      .where('fence', '=', of.fence)
      .where('status', '=', 'processing')
      .where(onlyIf)
      .executeTakeFirstOrThrow(),
  )
  return numUpdatedRows === 1n
}

/** One statement that commits by itself: the row carries its completing attempt, so history needs no other write. */
export function complete(store: Store, of: Holder, ending: Ending): Promise<boolean> {
  return store.statement((db) => transition(store, db, { move: 'complete', of, ending }))
}

/** Where a run went that its holder gave up: `stopped` when a cancel had been asked for, which ends it for good. */
export type GivenUp = 'done' | 'stopped' | 'lost'

/** @param retryInSeconds when the next attempt may begin; null when there is to be none */
export function fail(store: Store, of: Holder, reason: FailureReason, ending: Ending, retryInSeconds: number | null): Promise<GivenUp> {
  return giveUp(store, { move: retryInSeconds === null ? 'fail' : 'retry', of, laterSeconds: retryInSeconds ?? 0, reason, ending })
}

/** Gives the run back as if it had not been begun: the attempt is not counted. */
export async function release(store: Store, of: Holder, ending: Ending): Promise<boolean> {
  return (await giveUp(store, { move: 'release', of, set: { attempt: of.attempt - 1 }, ending })) !== 'lost'
}

/** An operator's cancel comes first, also when the attempt ends before a heartbeat has seen it: the run is not tried again. */
function giveUp(store: Store, wanted: Transition): Promise<GivenUp> {
  const { of, ending } = wanted
  return store.transaction(async (tx) => {
    if (await transition(store, tx, { ...wanted, onlyIf: sql<boolean>`cancel_requested_at is null` })) return 'done'
    const stop: Transition = { move: 'stop', of, reason: 'cancelled', onlyIf: sql<boolean>`cancel_requested_at is not null`, ...(ending && { ending }) }
    return (await transition(store, tx, stop)) ? 'stopped' : 'lost'
  })
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
    .where('outcome', 'in', ['failed', 'released', 'cancelled'])
    .executeTakeFirst()
  return line !== undefined
}

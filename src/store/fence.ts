/** Fences: one counter a scope, which outlives every run of it. */
import { sql } from 'kysely'
import { FLOOR_SCOPE } from '../dialect/dialect.ts'
import type { Db, Store } from './tables.ts'

/**
 * Runs of one concurrency key share a scope, whatever their task; a launch without one counts within its task. A run
 * without one that workers take counts within itself, from its own fence on, so that no two of a task wait for each other.
 */
export function fenceScope(run: { readonly concurrencyKey: string | null; readonly task: string }): string {
  return run.concurrencyKey ?? run.task
}

/**
 * The next fence of a scope. The scope's row stays locked until the transaction ends, so fences are handed out in the
 * order of the commits. `above` is a fence that the run had in another scope. @throws the driver's duplicate-key error when two transactions make a new scope's row at once
 */
export async function raiseFence(tx: Db, scope: string, above = 0n): Promise<bigint> {
  const raised = await tx
    .updateTable('task_fences')
    .set({ counter: sql<bigint>`case when counter < ${above} then ${above} else counter end + 1` })
    .where('scope', '=', scope)
    .executeTakeFirstOrThrow()
  if (raised.numUpdatedRows === 0n) await tx.insertInto('task_fences').values({ scope, counter: larger(await counterOf(tx, FLOOR_SCOPE), above) + 1n }).execute()
  return counterOf(tx, scope)
}

function larger(a: bigint, b: bigint): bigint {
  return a < b ? b : a
}

export async function counterOf(db: Db, scope: string): Promise<bigint> {
  const row = await db.selectFrom('task_fences').select('counter').where('scope', '=', scope).executeTakeFirst()
  return BigInt(row?.counter ?? 0)
}

/** No new scope begins at or below this fence any more. Never lowers the floor. */
export async function raiseFloor(tx: Db, fence: bigint): Promise<void> {
  if ((await counterOf(tx, FLOOR_SCOPE)) >= fence) return
  const raised = await tx.updateTable('task_fences').set({ counter: sql<bigint>`case when counter < ${fence} then ${fence} else counter end` }).where('scope', '=', FLOOR_SCOPE).executeTakeFirstOrThrow()
  if (raised.numUpdatedRows === 0n) await tx.insertInto('task_fences').values({ scope: FLOOR_SCOPE, counter: fence }).execute()
}

/**
 * Raises the counter of every scope by `by`, and the floor under scopes that are still unknown to above all of them:
 * after a restored backup, the fences that were handed out in the lost time lie behind. Never lowers one.
 * @returns the new floor
 */
export async function bumpFences(store: Store, by: bigint): Promise<bigint> {
  return store.transaction(async (tx) => {
    await tx.updateTable('task_fences').set({ counter: sql<bigint>`counter + ${by}` }).execute()
    const { highest } = await tx.selectFrom('task_fences').select(sql<bigint | number | string | null>`max(counter)`.as('highest')).executeTakeFirstOrThrow()
    const floor = BigInt(highest ?? by)
    const raised = await tx.updateTable('task_fences').set({ counter: floor }).where('scope', '=', FLOOR_SCOPE).executeTakeFirstOrThrow()
    if (raised.numUpdatedRows === 0n) await tx.insertInto('task_fences').values({ scope: FLOOR_SCOPE, counter: floor }).execute()
    return floor
  })
}

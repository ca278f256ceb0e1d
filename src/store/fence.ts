/** Fences: one counter a scope, which outlives every run of it. */
import { sql } from 'kysely'
import { FLOOR_SCOPE } from '../dialect/dialect.ts'
import type { Db, Store } from './tables.ts'

/** Runs of one concurrency key share a scope, whatever their task; a run without one counts within its task. */
export function fenceScope(run: { readonly concurrencyKey: string | null; readonly task: string }): string {
  return run.concurrencyKey ?? run.task
}

/**
 * The next fence of a scope. The scope's row stays locked until the transaction ends, so fences are handed out in the
 * order of the commits. @throws the driver's duplicate-key error when two transactions make a new scope's row at once
 */
export async function raiseFence(tx: Db, scope: string): Promise<bigint> {
  const raised = await tx
    .updateTable('task_fences')
    .set({ counter: sql<bigint>`counter + 1` })
    .where('scope', '=', scope)
    .executeTakeFirstOrThrow()
  if (raised.numUpdatedRows === 0n) await tx.insertInto('task_fences').values({ scope, counter: (await counterOf(tx, FLOOR_SCOPE)) + 1n }).execute()
  return counterOf(tx, scope)
}

async function counterOf(db: Db, scope: string): Promise<bigint> {
  const row = await db.selectFrom('task_fences').select('counter').where('scope', '=', scope).executeTakeFirst()
  return BigInt(row?.counter ?? 0)
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

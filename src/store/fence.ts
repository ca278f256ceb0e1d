/** Fences: one counter a scope, which outlives every run of it. */
import { sql } from 'kysely'
import type { Db } from './tables.ts'

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
  if (raised.numUpdatedRows === 0n) await tx.insertInto('task_fences').values({ scope, counter: 1n }).execute()
  const { counter } = await tx.selectFrom('task_fences').select('counter').where('scope', '=', scope).executeTakeFirstOrThrow()
  return BigInt(counter)
}

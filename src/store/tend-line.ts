/** Keeps runs in their right place in line: the due ones in it, the blocked ones behind their key, the next of a free key ready. */
import { sql } from 'kysely'
import { inLine } from './line.ts'
import type { Db, Store } from './tables.ts'

export interface Head {
  readonly taskKey: string
  readonly isReady: boolean
}

/** Who is first in line for each of these keys, ready or not. */
export async function headsOfLine(store: Store, db: Db, keys: readonly string[], parkedOnly = false): Promise<Map<string, Head>> {
  const heads = new Map<string, Head>()
  if (keys.length === 0) return heads
  const first = sql<string | null>`(
    select concat(case when w.ready_queue is null then '-' else '+' end, w.task_key) from ${store.table('task_runs')} as w
    where w.waiting_key = scope ${parkedOnly ? sql`and w.ready_queue is null` : sql``} order by w.priority, w.position limit 1)`
  const rows = await db.selectFrom('task_fences').select(['scope', first.as('head')]).where(store.oneOf(sql.ref('scope'), keys)).execute()
  for (const { scope, head } of rows) if (head !== null) heads.set(scope, { taskKey: head.slice(1), isReady: head.startsWith('+') })
  return heads
}

/** Runs in line become ready, whatever they were; others stay as they are. */
export async function makeReady(store: Store, db: Db, taskKeys: readonly string[]): Promise<void> {
  if (taskKeys.length === 0) return
  await db.updateTable('task_runs').set(inLine()).where(store.oneOf(sql.ref('task_key'), taskKeys)).where('status', '=', 'pending').where('due_at', 'is', null).execute()
}

/** Out of the index of what is ready, until a run of their key is closed. */
export async function park(store: Store, db: Db, taskKeys: readonly string[]): Promise<void> {
  if (taskKeys.length === 0) return
  await db.updateTable('task_runs').set({ ready_queue: null }).where(store.oneOf(sql.ref('task_key'), taskKeys)).where('status', '=', 'pending').execute()
}

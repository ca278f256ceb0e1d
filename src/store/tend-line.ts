/** Keeps runs in their right place in line: the due ones in it, the blocked ones behind their key, the next of a free key ready. */
import { sql } from 'kysely'
import { beside, inLine, isDueBy, isStill } from './line.ts'
import type { Db, Store } from './tables.ts'

export interface Head {
  readonly key: string
  readonly taskKey: string
  readonly limit: number
  readonly isReady: boolean
}

/** Who is first in line for each of these keys; with `parkedOnly`, the first of those that are not ready. */
export async function headsOfLine(store: Store, db: Db, keys: readonly string[], parkedOnly = false): Promise<Map<string, Head>> {
  const heads = new Map<string, Head>()
  if (keys.length === 0) return heads
  const first = sql<string | null>`(
    select concat(case when w.ready_queue is null then '-' else '+' end, w.concurrency_limit, ' ', w.task_key) from ${store.table('task_runs')} as w
    where w.waiting_key = scope ${parkedOnly ? sql`and w.ready_queue is null` : sql``} order by w.priority, w.position limit 1)`
  const rows = await db.selectFrom('task_fences').select(['scope', first.as('head')]).where(store.oneOf(sql.ref('scope'), keys)).execute()
  for (const { scope, head } of rows) {
    const [, sign, limit, taskKey] = /^([+-])(\d+) (.*)$/s.exec(head ?? '') ?? []
    if (taskKey !== undefined) heads.set(scope, { key: scope, taskKey, limit: Number(limit), isReady: sign === '+' })
  }
  return heads
}

/** Runs in line become ready; others stay as they are. */
export async function makeReady(store: Store, db: Db, taskKeys: readonly string[]): Promise<void> {
  if (taskKeys.length === 0) return
  await db.updateTable('task_runs').set(inLine()).where(store.oneOf(sql.ref('task_key'), taskKeys)).where(isStill('pending')).where('due_at', 'is', null).execute()
}

/** Where several have met a busy key, more stand there: they are parked together, not looked at in claim after claim. */
const BEHIND = 1000

/** What stands ready behind these keys of limit 1, and nobody has locked; to be called with the fences of the keys locked. */
export async function readyBehind(store: Store, tx: Db, keys: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const key of keys) {
    const line = tx.selectFrom('task_runs').select('task_key').where('waiting_key', '=', key).where('ready_queue', 'is not', null).where('concurrency_limit', '=', 1).where(isStill('pending')).orderBy('priority').orderBy('position').limit(BEHIND)
    found.push(...(await store.skipLocked(line).execute()).map((row) => row.task_key))
  }
  return found
}

/** Out of the index of what is ready, until a run of their key is closed. */
export async function park(store: Store, db: Db, taskKeys: readonly string[]): Promise<void> {
  if (taskKeys.length === 0) return
  await db.updateTable('task_runs').set({ ready_queue: null }).where(store.oneOf(sql.ref('task_key'), taskKeys)).where(isStill('pending')).execute()
}

/** Few enough that a batch is a short transaction. */
const BATCH = 500

/** Puts runs in line whose time has come, the longest due first. @returns how many; as many as a batch takes means that there may be more */
export async function promote(store: Store, limit = BATCH): Promise<number> {
  return store.transaction(async (tx) => {
    const due = tx.selectFrom('task_runs').select('task_key').where(isDueBy(store, 'due_at')).where(isStill('pending')).orderBy('due_at').limit(limit)
    const keys = (await store.skipLocked(due).execute()).map((row) => row.task_key)
    if (keys.length > 0) await tx.updateTable('task_runs').set(inLine()).where(store.oneOf(sql.ref('task_key'), keys)).where(isStill('pending')).execute()
    return keys.length
  })
}

/**
 * Whether there is anything to do for a worker of these queues; one statement, which touches nothing. Both questions are
 * put so that they are answered by the first entry of an index (an EXISTS was answered by reading five million rows).
 */
export async function look(store: Store, queues: readonly string[], tasks: readonly string[]): Promise<{ ready: boolean; due: boolean }> {
  const runs = store.table('task_runs')
  const first = (queue: string) => sql`(select 1 from ${runs} where ready_queue = ${queue} and ${isStill('pending')} and ${beside(store.oneOf(sql.ref('task_name'), tasks))} order by priority, position limit 1)`
  const { rows } = await sql<{ ready: number; due: number }>`
    select coalesce(${sql.join([...queues.map(first), sql`0`, sql`0`])}) as ready,
      case when (select due_at from ${runs} where due_at is not null order by due_at limit 1) <= ${store.now()} then 1 else 0 end as due`.execute(store.db)
  return { ready: Number(rows[0]!.ready) === 1, due: Number(rows[0]!.due) === 1 }
}

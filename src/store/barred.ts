/** What bars a task from running at all: an operator's pause, or a window older than the history that was kept. */
import { sql, type RawBuilder } from 'kysely'
import type { Db, Store } from './tables.ts'

interface Barrable {
  readonly task: string
  readonly window: { readonly start: Date } | null
}

/** Selects a row when the request is barred. It stands inside the claiming INSERT, so that no prune slips in between. */
export function bar(store: Store, { task, window }: Barrable): RawBuilder<unknown> {
  const pruned = window ? sql`or pruned_before > ${store.instant(window.start)}` : sql``
  return sql`select 1 from ${store.table('tasks')} where task_name = ${task} and (paused_at is not null ${pruned})`
}

/** Why a request is barred just now; null when nothing bars it. */
export async function barredBy(store: Store, request: Barrable, db: Db = store.db): Promise<'paused' | 'pruned' | null> {
  const row = await db
    .selectFrom('tasks')
    .select(sql<number>`case when paused_at is not null then 1 else 0 end`.as('paused'))
    .where('task_name', '=', request.task)
    .where(sql<boolean>`exists (${bar(store, request)})`)
    .executeTakeFirst()
  if (!row) return null
  return Number(row.paused) === 1 ? 'paused' : 'pruned'
}

/** Thrown to roll back, and caught here. */
const BARRED = Symbol('the run is barred')

/**
 * Inserts a run that nobody claims yet, unless it is barred. It looks after the insert, in its transaction: what is not
 * to be seen by then was committed later, and its prune still finds our row.
 * @returns false when it was barred, and nothing is there @throws the driver's error for a key that exists
 */
export async function insertUnlessBarred(store: Store, request: Barrable, insert: (tx: Db) => Promise<unknown>): Promise<boolean> {
  try {
    await store.transaction(async (tx) => {
      await insert(tx)
      if ((await barredBy(store, request, tx)) !== null) throw BARRED
    })
    return true
  } catch (error) {
    if (error === BARRED) return false
    throw error
  }
}

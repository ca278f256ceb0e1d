/**
 * Takes the first run in line by one statement that commits by itself, where the database can: a round trip instead of
 * four, for what has just been put into an empty line. Of one row no planner finds a better way than the line's own index.
 */
import { firstQuery } from './ready-rows.ts'
import type { Store } from './tables.ts'
import { nextFence, taken, takenOf, type Taken, type TakeRequest } from './take-batch.ts'
import { takeReady } from './transition-batch.ts'

/**
 * To be called where `store.updatesInOne`; `limit` and `after` do not matter to it.
 * @returns null when the first has a concurrency key, over which a transaction decides: nothing was taken
 */
export async function takeFirst(store: Store, request: TakeRequest): Promise<Taken | null> {
  const { query, floor } = firstQuery(store, request)
  const [row] = await store.statement((db) => takeReady(store, db, query, taken(store, request, floor)))
  if (row === undefined) return { runs: [], seen: 0, last: undefined }
  if (row.concurrency_key !== null) return null
  return { runs: [takenOf(store, request, row, nextFence(row, BigInt(row.floor)))], seen: 1, last: row }
}

/** The slots of a concurrency key: the key itself is the first, `key#2` the second, and so on; each is held by one run at most. */
import { sql } from 'kysely'
import type { Db, Store } from './tables.ts'

/** The names of the slots 1 to `limit`. No concurrency key has a `#` (model/names.ts), so no slot has another key's name. */
export function slotsOf(key: string, limit: number): string[] {
  return Array.from({ length: limit }, (_, nth) => (nth === 0 ? key : `${key}#${nth + 1}`))
}

/** Which of the slots that runs of these keys may take are held now. */
export async function activeKeys(store: Store, db: Db, wanted: readonly { readonly key: string; readonly limit: number }[]): Promise<Set<string>> {
  const names = new Set(wanted.flatMap(({ key, limit }) => slotsOf(key, limit)))
  if (names.size === 0) return new Set()
  const rows = await db.selectFrom('task_runs').select('active_key').where(store.oneOf(sql.ref('active_key'), [...names])).execute()
  return new Set(rows.map((row) => row.active_key!))
}

/** Which rights this user has, by asking for each with a statement that touches no row. */
import { sql } from 'kysely'
import type { Rights, TableRight } from '../dialect/rights.ts'
import type { Store } from './tables.ts'

/** @returns `INSERT on task_runs`, …: those of the wanted ones that are refused */
export async function missingRights(store: Store, { tables }: Rights): Promise<string[]> {
  const missing: string[] = []
  for (const [table, rights] of Object.entries(tables)) {
    for (const right of rights) if (await isRefused(store, table, right)) missing.push(`${right.toUpperCase()} on ${table}`)
  }
  return missing
}

/** Whatever else is wrong with the statement is said after the right has been looked at. */
async function isRefused(store: Store, name: string, right: TableRight): Promise<boolean> {
  const table = store.table(name)
  const [column] = KEYS[name] ?? ['task_key']
  const key = sql.ref(column!)
  const probe = {
    select: sql`select 1 from ${table} where 1 = 0`,
    insert: sql`insert into ${table} (${key}) select ${key} from ${table} where 1 = 0`,
    update: sql`update ${table} set ${key} = ${key} where 1 = 0`,
    delete: sql`delete from ${table} where 1 = 0`,
  }[right]
  try {
    await store.statement((db) => probe.execute(db))
    return false
  } catch (error) {
    const { kind } = store.diagnose(error)
    if (kind === 'unavailable' || kind === 'transient') throw error
    return kind === 'refused'
  }
}

const KEYS: Readonly<Record<string, readonly [string]>> = { task_fences: ['scope'], tasks: ['task_name'], task_effects: ['effect_key'], fenced_resources: ['resource'] }

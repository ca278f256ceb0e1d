/** Waits for transactions of PostgreSQL that may still see a table as it was before. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql, type Kysely } from 'kysely'

const FIRST_PAUSE_MS = 2
const LONGEST_PAUSE_MS = 200
/** Claims take milliseconds; a transaction of the caller's that completes a run takes as long as it takes. */
const PATIENCE_MS = 30_000

/**
 * Differs by necessity: a claim is one statement here, which goes on with the view it began with after it has waited for
 * a row. It locks the table, in the mode of writers, before it takes that view: so who does not hold that lock now sees
 * what is committed now. @returns false when one that holds it does not end
 */
export async function outwaitWriters(db: Kysely<unknown>, schema: string, table: string): Promise<boolean> {
  const deadline = performance.now() + PATIENCE_MS
  let left = await writers(db, schema, table)
  for (let pause = FIRST_PAUSE_MS; left.size > 0; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    if (performance.now() > deadline) return false
    await sleep(pause)
    const now = await writers(db, schema, table)
    left = new Set([...left].filter((one) => now.has(one)))
  }
  return true
}

async function writers(db: Kysely<unknown>, schema: string, table: string): Promise<Set<string>> {
  const { rows } = await sql<{ virtualtransaction: string }>`
    select distinct l.virtualtransaction
    from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
    where l.locktype = 'relation' and l.mode = 'RowExclusiveLock'
      and l.database = (select oid from pg_database where datname = current_database())
      and n.nspname = ${schema} and c.relname = ${table} and l.pid is distinct from pg_backend_pid()`.execute(db)
  return new Set(rows.map(({ virtualtransaction }) => virtualtransaction))
}

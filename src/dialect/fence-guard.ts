/** The one statement with which a protected resource refuses a writer whose fence is behind. docs/fencing.md shows it to everybody. */
import { sql, type Kysely } from 'kysely'
import type { Engine } from './caller-connection.ts'

export const FENCED_RESOURCES = 'fenced_resources'
const STALE_CONSTRAINT = 'fenced_resources_stale'
/** A violated CHECK: MySQL and MariaDB. */
const CHECK_VIOLATED = new Set([3819, 4025])

/**
 * Lets the token through if none greater was there before, and remembers it. Its row stays locked until the caller's
 * transaction ends, so a later token waits for our writes or we are refused.
 * @param table the table of tokens, by its full name
 * @returns false when the token is stale: then nothing was changed, and the caller's transaction is still usable
 */
export async function guardFence(engine: Engine, db: Kysely<unknown>, table: ReturnType<typeof sql.table>, resource: string, token: bigint): Promise<boolean> {
  if (engine === 'mysql') return guardByCheck(db, table, resource, token)
  const { numAffectedRows } = await sql`
    insert into ${table} as r (resource, token) values (${resource}, ${token})
    on conflict (resource) do update set token = excluded.token where r.token <= excluded.token`.execute(db)
  return numAffectedRows === 1n
}

/**
 * Differs by necessity: ON DUPLICATE KEY UPDATE has no WHERE, and its row count means one thing with FOUND_ROWS and
 * another without. So a stale token violates a CHECK instead, which undoes the statement and can not be overlooked.
 * (Assignments run from left to right: `token` is still the old one in the first.)
 */
async function guardByCheck(db: Kysely<unknown>, table: ReturnType<typeof sql.table>, resource: string, token: bigint): Promise<boolean> {
  try {
    await sql`
      insert into ${table} (resource, token) values (${resource}, ${token})
      on duplicate key update stale = (values(token) < token), token = values(token)`.execute(db)
    return true
  } catch (error) {
    const { errno, message } = error as Error & { errno?: number }
    if (errno !== undefined && CHECK_VIOLATED.has(errno) && message.includes(STALE_CONSTRAINT)) return false
    throw error
  }
}

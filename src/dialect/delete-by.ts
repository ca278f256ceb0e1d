/** Deletes rows by the values of a column, where the server finds them by its index unasked. */
import { sql, type Kysely } from 'kysely'
import type { DeleteBy, Dialect } from './dialect.ts'

export async function deleteBy<Tables>(db: Kysely<Tables>, tableOf: Dialect['table'], { table, column, values }: DeleteBy): Promise<number> {
  const { numAffectedRows } = await sql`delete from ${tableOf(table)} where ${sql.ref(column)} in (${sql.join(values)})`.execute(db)
  return Number(numAffectedRows)
}

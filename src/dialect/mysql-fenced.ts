/** The fenced insert of MySQL and MariaDB, as one script or, in a cluster, statement by statement. */
import { sql, type Kysely, type RawBuilder } from 'kysely'
import { FLOOR_SCOPE, type Dialect, type FencedInsert } from './dialect.ts'

type TableOf = Dialect['table']

/**
 * Differs by necessity: no data-changing statement returns rows to another, so this is a small script, sent in one
 * round trip. The upsert locks the scope's row first; `last_insert_id(…)` carries the new fence to the insert.
 * (ON DUPLICATE KEY serves the counter here; the claim itself is a plain INSERT whose violation is heard.)
 */
export async function insertFenced<Tables>(db: Kysely<Tables>, tableOf: TableOf, insert: FencedInsert): Promise<bigint | null> {
  return db.connection().execute(async (connection) => {
    try {
      const { rows } = await sql<unknown>`
        set transaction isolation level read committed; start transaction;
        ${raise(tableOf, insert)};
        ${insertRaised(tableOf, insert)};
        commit`.execute(connection)
      const [, , raised, inserted] = rows as { affectedRows: number; insertId: number | string }[]
      return inserted!.affectedRows === 1 ? BigInt(raised!.insertId) : null
    } catch (error) {
      // Whatever stopped the script left its transaction open on this connection.
      await sql`rollback`.execute(connection).catch(() => {}) // Fails only on a dead connection, which is then discarded.
      throw error
    }
  })
}

/**
 * Differs by necessity: a node of a Galera cluster that rolls a transaction back for another node's between two statements
 * of one script (MariaDB 10.11, in one of a hundred contended claims) goes on with the rest as if nothing had happened: the
 * insert commits by itself, or COMMIT confirms what is not there. To a statement on its own it answers with the error.
 */
export function insertFencedStepwise<Tables>(db: Kysely<Tables>, tableOf: TableOf, insert: FencedInsert): Promise<bigint | null> {
  return db.transaction().setIsolationLevel('read committed').execute(async (tx) => {
    const raised = await raise(tableOf, insert).execute(tx)
    const { numAffectedRows } = await insertRaised(tableOf, insert).execute(tx)
    return numAffectedRows === 1n ? raised.insertId! : null
  })
}

function raise(tableOf: TableOf, { scope }: FencedInsert): RawBuilder<unknown> {
  return sql`insert into ${tableOf('task_fences')} (scope, counter)
          select ${scope}, last_insert_id(coalesce((select counter from ${tableOf('task_fences')} where scope = ${FLOOR_SCOPE}), 0) + 1) from dual
          on duplicate key update counter = last_insert_id(counter + 1)`
}

function insertRaised(tableOf: TableOf, { table, values, unless }: FencedInsert): RawBuilder<unknown> {
  const columns = Object.keys(values)
  return sql`insert into ${tableOf(table)} (${sql.join(columns.map((c) => sql.ref(c)))}, fence)
          select ${sql.join(Object.values(values))}, last_insert_id() from dual where not exists (${unless})`
}

/** Words of schema definitions as MySQL and MariaDB have them. */
import { sql } from 'kysely'
import type { Ddl } from './ddl.ts'

/** @param collation compares byte for byte and does not pad */
export function mysqlDdl(collation: string): Ddl {
  const text = sql`longtext character set utf8mb4 collate ${sql.raw(collation)}`
  return {
    key: (length) => sql`varchar(${sql.lit(length)}) character set utf8mb4 collate ${sql.raw(collation)}`,
    text,
    json: sql`json`,
    // DATETIME holds UTC as written, whatever zone a session has, and reaches beyond 2038; TIMESTAMP does neither.
    instant: sql`datetime(6)`,
    integer: sql`integer`,
    bigint: sql`bigint`,
    double: sql`double`,
    boolean: sql`boolean`,
    numberedKey: sql`bigint auto_increment primary key`,
    tableOptions: sql`engine = InnoDB row_format = dynamic`,
    async createIndex(db, { name, table, columns, unique }) {
      // Differs by necessity: there are no partial indexes (NULLs repeat in a unique one, which is all that is needed),
      // and MySQL's CREATE INDEX cannot say IF NOT EXISTS; migrations run one at a time, so asking first is enough.
      const { rows } = await sql<{ found: number }>`
        select count(*) as found from information_schema.statistics
        where table_schema = database() and table_name = ${table} and index_name = ${name}`.execute(db)
      if (Number(rows[0]!.found) > 0) return
      const kind = unique ? sql`unique index` : sql`index`
      await sql`create ${kind} ${sql.id(name)} on ${sql.id(table)} (${sql.join(columns.map((c) => sql.ref(c)))})`.execute(db)
    },
    async createView(db, name, query) {
      await sql`create or replace view ${sql.id(name)} as ${query}`.execute(db)
    },
  }
}

/** Brings the schema up to this version; safe when many start at once and when killed between any two statements. */
import { sql, type Kysely } from 'kysely'
import { Umzug, type UmzugStorage } from 'umzug'
import type { MigrationContext } from '../../migrations/context.ts'
import { migrations } from '../../migrations/index.ts'
import type { Dialect } from '../dialect/dialect.ts'
import { requireCurrentSchema } from './schema-state.ts'

/**
 * Applies what is missing and returns its names; an empty list when there was nothing to do.
 *
 * Where DDL is transactional (PostgreSQL, SQLite) all of it is one transaction with its record. Elsewhere a migration
 * that was cut off is simply run again: each of its statements may be repeated, and the record comes last.
 * @throws SCHEMA_AHEAD when a newer version has been here
 */
export async function migrate<T>(dialect: Dialect<T>): Promise<string[]> {
  return (dialect as Dialect).exclusively(async (db) => {
    await sql`
      create table if not exists ${dialect.table('runledger_migrations')} (
        name ${dialect.ddl.key(100)} not null primary key,
        applied_at ${dialect.ddl.instant} not null
      ) ${dialect.ddl.tableOptions}`.execute(db)
    const applied = await umzug(dialect, db).up()
    await requireCurrentSchema({ ...dialect, db: db as Kysely<T> })
    return applied.map(({ name }) => name)
  })
}

function umzug<T>(dialect: Dialect<T>, db: Kysely<unknown>): Umzug<MigrationContext> {
  const { ddl, table, now, plusSeconds, secondsBetween } = dialect
  return new Umzug<MigrationContext>({
    migrations: migrations.map(({ name, load }) => ({ name, up: async ({ context }) => (await load()).up(context) })),
    context: { db, ddl, table, now, plusSeconds, secondsBetween },
    storage: recordedIn(dialect, db),
    logger: undefined,
  })
}

function recordedIn<T>({ table, now }: Dialect<T>, db: Kysely<unknown>): UmzugStorage<MigrationContext> {
  return {
    async executed() {
      const { rows } = await sql<{ name: string }>`select name from ${table('runledger_migrations')} order by name`.execute(db)
      return rows.map(({ name }) => name)
    },
    async logMigration({ name }) {
      await sql`insert into ${table('runledger_migrations')} (name, applied_at) values (${name}, ${now()})`.execute(db)
    },
    async unlogMigration({ name }) {
      await sql`delete from ${table('runledger_migrations')} where name = ${name}`.execute(db)
    },
  }
}

/** PostgreSQL: what it does its own way. */
import { Kysely, PostgresDialect, sql, type RawBuilder } from 'kysely'
import { borrowFor } from './caller-connection.ts'
import type { ConnectOptions } from './connect-options.ts'
import type { Ddl } from './ddl.ts'
import { deleteBy } from './delete-by.ts'
import { FLOOR_SCOPE, type Dialect, type FencedInsert } from './dialect.ts'
import { goodbye } from './goodbye.ts'
import { FENCED_RESOURCES, guardFence } from './fence-guard.ts'
import type { LedgerNames } from './ledger-names.ts'
import { examinePostgres } from './postgres-checkup.ts'
import { diagnose as diagnosed } from './postgres-errors.ts'
import { batchVerbs } from './postgres-batch.ts'
import { listen } from './postgres-listen.ts'
import { openPool } from './postgres-pool.ts'
import { OFTEN } from './postgres-prepared.ts'
import { postgresGrants } from './postgres-rights.ts'
import { outwaitWriters } from './postgres-writers.ts'
import { retryTransient } from './retry.ts'
import { placeOf, type ServerAddress } from './url.ts'

/** Any constant of our own: two migrations of two ledgers in one database may well take turns. */
const MIGRATION_LOCK = 7_205_759_403

export async function postgres<Tables>(address: ServerAddress, names: LedgerNames, options: ConnectOptions): Promise<Dialect<Tables>> {
  const schema = address.schema ?? 'public'
  const diagnose: Dialect['diagnose'] = (error) => diagnosed(error, names, schema)
  const { pool, newClient, cut } = await openPool(address, schema, options)
  const plain = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }), ...(options.log && { log: options.log }) })
  const db = names.on(plain.withSchema(schema))

  const table = (name: string) => sql`${sql.id(schema, names.full(name))}`
  const dialect: Dialect<Tables> = {
    place: `PostgreSQL at ${placeOf(address)}`,
    db,
    ddl: ddl(table, names),
    table,
    transaction: (work) => retryTransient(diagnose, () => db.transaction().setIsolationLevel('read committed').execute(work)),
    statement: (work) => retryTransient(diagnose, () => work(db)),
    insertFenced: (insert) => retryTransient(diagnose, () => insertFenced(plain, table, insert)),
    on: async (connection) => names.on((await borrowFor<Tables>('postgres', connection)).withSchema(schema)),
    guardFence: (on, resource, token) => guardFence('postgres', on as Kysely<unknown>, table(FENCED_RESOURCES), resource, token),
    outwaitClaims: () => outwaitWriters(db as Kysely<unknown>, schema, names.full('task_runs')),
    ...batchVerbs<Tables>(db, table, `${schema}.${names.prefix}`, (heard) => listen(newClient, `${schema}.${names.prefix}`, heard)),
    skipLocked: (query) => query.forUpdate().skipLocked(),
    deleteBy: (on, by) => deleteBy(on, table, by),
    now: () => (options.clock?.offsetMs ? sql`(clock_timestamp() + ${options.clock.offsetMs} * interval '1 millisecond')` : sql`clock_timestamp()`),
    plusSeconds: (instant, seconds) => sql`(${instant} + ${seconds} * interval '1 second')`,
    secondsBetween: (from, to) => sql`extract(epoch from (${to} - ${from}))::float8`,
    instant: (date) => sql`${date}::timestamptz`,
    readInstant: (value) => (value instanceof Date ? value : null),
    diagnose,
    examine: () => examinePostgres(db as Kysely<unknown>, pool, names, schema),
    grants: (user, rights) => postgresGrants(user, rights, names, schema),
    exclusively: (work) =>
      db.transaction().execute(async (tx) => {
        await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(tx)
        await createSchema(tx, schema)
        return work(tx)
      }),
    close: () => goodbye(() => db.destroy(), cut),
  }
  return dialect
}

/**
 * One statement: the upsert locks the scope's row, and the whole statement fails or succeeds together.
 * (ON CONFLICT serves the counter here; the claim itself is a plain INSERT whose violation is heard.)
 */
async function insertFenced<Tables>(db: Kysely<Tables>, tableOf: Dialect['table'], { scope, table, values, unless }: FencedInsert): Promise<bigint | null> {
  const columns = Object.keys(values)
  const { rows } = await sql<{ fence: bigint }>`${sql.raw(OFTEN)}
    with raised as (
      insert into ${tableOf('task_fences')} as f (scope, counter)
      select ${scope}, coalesce((select counter from ${tableOf('task_fences')} where scope = ${FLOOR_SCOPE}), 0) + 1
      on conflict (scope) do update set counter = f.counter + 1
      returning counter
    )
    insert into ${tableOf(table)} (${sql.join(columns.map((c) => sql.ref(c)))}, fence)
    select ${sql.join(Object.values(values))}, raised.counter from raised where not exists (${unless})
    returning fence`.execute(db)
  return rows[0]?.fence ?? null
}

// CREATE SCHEMA IF NOT EXISTS asks for the right to create one even when there is nothing to create.
async function createSchema<Tables>(tx: Kysely<Tables>, schema: string): Promise<void> {
  const { rows } = await sql`select 1 from pg_namespace where nspname = ${schema}`.execute(tx)
  if (rows.length === 0) await sql`create schema ${sql.id(schema)}`.execute(tx)
}

function ddl(table: (name: string) => RawBuilder<unknown>, names: LedgerNames): Ddl {
  return {
    key: (length) => sql`varchar(${sql.lit(length)}) collate "C"`,
    text: sql`text`,
    json: sql`json`,
    instant: sql`timestamptz(6)`,
    integer: sql`integer`,
    bigint: sql`bigint`,
    double: sql`double precision`,
    boolean: sql`boolean`,
    numberedKey: sql`bigint generated always as identity primary key`,
    tableOptions: sql``,
    constraint: (name) => sql`${sql.id(names.full(name))}`,
    async addColumn(db, on, column, definition) {
      await sql`alter table ${table(on)} add column if not exists ${sql.ref(column)} ${definition}`.execute(db)
    },
    async createIndex(db, { name, table: on, columns, unique, where }) {
      const kind = unique ? sql`unique index` : sql`index`
      await sql`create ${kind} if not exists ${sql.id(names.full(name))} on ${table(on)} (${sql.join(columns.map((c) => sql.ref(c)))}) ${where ? sql`where ${where}` : sql``}`.execute(db)
    },
    async createView(db, name, query) {
      await sql`create or replace view ${table(name)} as ${query}`.execute(db)
    },
  }
}

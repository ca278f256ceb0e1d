/** MySQL 8+ and, with the few differences named in mariadb.ts, MariaDB 10.6+. */
import { Kysely, MysqlDialect, sql, type RawBuilder } from 'kysely'
import { LedgerError } from '../model/errors.ts'
import { borrowFor } from './caller-connection.ts'
import type { ConnectOptions } from './connect-options.ts'
import type { Ddl } from './ddl.ts'
import { FLOOR_SCOPE, type Dialect, type FencedInsert } from './dialect.ts'
import { FENCED_RESOURCES, guardFence } from './fence-guard.ts'
import { goodbye } from './goodbye.ts'
import { batchVerbs } from './mysql-batch.ts'
import { mariadbCollation } from './mariadb.ts'
import type { LedgerNames } from './ledger-names.ts'
import { examineMysql } from './mysql-checkup.ts'
import { diagnose as diagnosed } from './mysql-errors.ts'
import { openPool } from './mysql-pool.ts'
import { mysqlGrants } from './mysql-rights.ts'
import { retryTransient } from './retry.ts'
import { unreachable } from './unreachable.ts'
import { placeOf, type ServerAddress } from './url.ts'

/** Byte for byte, trailing spaces and case included: the collations of MySQL 8 that end in `_bin` alone pad. */
const MYSQL_COLLATION = 'utf8mb4_0900_bin'

export async function mysql<Tables>(address: ServerAddress, names: LedgerNames, options: ConnectOptions): Promise<Dialect<Tables>> {
  const diagnose: Dialect['diagnose'] = (error) => diagnosed(error, names)
  const { pool, cut } = await openPool(address, options)
  const db = names.on(new Kysely<Tables>({ dialect: new MysqlDialect({ pool }), ...(options.log && { log: options.log }) }))
  const table: Dialect['table'] = (name) => sql`${sql.id(names.full(name))}`
  const place = placeOf(address)
  const server = await greet(db, place).catch((error: unknown) => {
    pool.end(() => {})
    throw unreachable(diagnose, `MySQL at ${place}`, error)
  })

  const transaction: Dialect<Tables>['transaction'] = (work) => retryTransient(diagnose, () => db.transaction().setIsolationLevel('read committed').execute(work))

  const dialect: Dialect<Tables> = {
    place: `${server.product} at ${place}`,
    db,
    ddl: ddl(server.collation, names),
    table,
    transaction,
    statement: (work) => retryTransient(diagnose, () => work(db)),
    insertFenced: (insert) => retryTransient(diagnose, () => insertFenced(db, table, insert)),
    on: async (connection) => names.on(await borrowFor<Tables>('mysql', connection)),
    guardFence: (on, resource, token) => guardFence('mysql', on as Kysely<unknown>, table(FENCED_RESOURCES), resource, token),
    outwaitClaims: (scopes) => outwaitClaims(transaction, table('task_fences'), scopes),
    ...batchVerbs<Tables>(table, diagnose, instantText),
    skipLocked: (query) => query.forUpdate().skipLocked(),
    deleteBy: (on, { table: name, column, index, values }) => deleteBy(on, table(name), sql.id(index === 'primary' ? 'PRIMARY' : names.full(index)), column, values),
    now: () => (options.clock?.offsetMs ? sql`(utc_timestamp(6) + interval ${sql.lit(Math.round(options.clock.offsetMs) * 1000)} microsecond)` : sql`utc_timestamp(6)`),
    plusSeconds: (instant, seconds) => sql`timestampadd(microsecond, round(${seconds} * 1e6), ${instant})`,
    secondsBetween: (from, to) => sql`(timestampdiff(microsecond, ${from}, ${to}) / 1e6)`,
    instant: (date) => sql`cast(${instantText(date)} as datetime(6))`,
    readInstant: (value) => (value instanceof Date ? value : null),
    diagnose,
    examine: () => examineMysql(db as Kysely<unknown>, pool, names, server.product, server.collation),
    grants: (user, rights) => mysqlGrants(user, rights, names, address.database ?? ''),
    exclusively: (work) => exclusively(db, table('runledger_lock'), diagnose, work),
    close: () => goodbye(() => db.destroy(), cut),
  }
  return dialect
}

function instantText(date: Date): string {
  return date.toISOString().slice(0, -1).replace('T', ' ')
}

interface Server {
  readonly product: string
  readonly collation: string
}

/** The first words on the line: who is there, and is it somebody we can work with? */
async function greet<Tables>(db: Kysely<Tables>, place: string): Promise<Server> {
  const { rows } = await sql<{ version: string; mode: string }>`select version() as version, @@sql_mode as mode`.execute(db)
  const { version, mode } = rows[0]!
  if (mode.includes('NO_BACKSLASH_ESCAPES')) {
    throw new LedgerError('DATABASE_UNAVAILABLE', `${place}: sql_mode NO_BACKSLASH_ESCAPES is on; under it the driver cannot quote values safely`, { place, retryable: false })
  }
  const isMariadb = version.includes('MariaDB')
  checkVersion(isMariadb, version, place)
  return isMariadb ? { product: `MariaDB ${version.split('-')[0]}`, collation: mariadbCollation } : { product: `MySQL ${version.split('-')[0]}`, collation: MYSQL_COLLATION }
}

function checkVersion(isMariadb: boolean, version: string, place: string): void {
  const [major = 0, minor = 0] = version.split('.').map((part) => parseInt(part, 10))
  const enough = isMariadb ? major > 10 || (major === 10 && minor >= 6) : major >= 8
  if (!enough) throw new LedgerError('DATABASE_UNAVAILABLE', `${place} runs version ${version}; MySQL 8 or MariaDB 10.6 is the oldest that has SKIP LOCKED`, { place, version, retryable: false })
}

/**
 * Differs by necessity: no data-changing statement returns rows to another, so this is a small script, sent in one
 * round trip. The upsert locks the scope's row first; `last_insert_id(…)` carries the new fence to the insert.
 * (ON DUPLICATE KEY serves the counter here; the claim itself is a plain INSERT whose violation is heard.)
 */
async function insertFenced<Tables>(db: Kysely<Tables>, tableOf: Dialect['table'], { scope, table, values, unless }: FencedInsert): Promise<bigint | null> {
  const columns = Object.keys(values)
  return db.connection().execute(async (connection) => {
    try {
      const { rows } = await sql<unknown>`
        set transaction isolation level read committed; start transaction;
        insert into ${tableOf('task_fences')} (scope, counter)
          select ${scope}, last_insert_id(coalesce((select counter from ${tableOf('task_fences')} where scope = ${FLOOR_SCOPE}), 0) + 1) from dual
          on duplicate key update counter = last_insert_id(counter + 1);
        insert into ${tableOf(table)} (${sql.join(columns.map((c) => sql.ref(c)))}, fence)
          select ${sql.join(Object.values(values))}, last_insert_id() from dual where not exists (${unless});
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
 * Differs by necessity: a DELETE that scans the table, as the optimizer likes to where it is small, waits for every row on
 * its way that somebody has locked, and FORCE INDEX still lets it scan that. A join in this order is one look-up a value.
 */
async function deleteBy<Tables>(db: Kysely<Tables>, table: RawBuilder<unknown>, index: RawBuilder<unknown>, column: string, values: readonly (string | number)[]): Promise<number> {
  const { numAffectedRows } = await sql`
    delete d from (select ${sql.join(values, sql` as value union all select `)} as value) v
      straight_join ${table} d force index (${index}) on d.${sql.ref(column)} = v.value`.execute(db)
  return Number(numAffectedRows)
}

/**
 * Differs by necessity: other people's transactions can not be seen without a right to all of them. But a claim locks
 * its scope's row before its insert takes a view of the tables, so whoever has had that row has let earlier claims end.
 */
async function outwaitClaims<Tables>(transaction: Dialect<Tables>['transaction'], fences: ReturnType<Dialect['table']>, scopes: readonly string[]): Promise<boolean> {
  for (const scope of scopes) {
    await transaction((tx) => sql`
      insert into ${fences} (scope, counter)
        select ${scope}, coalesce((select f.counter from ${fences} f where f.scope = ${FLOOR_SCOPE}), 0) from dual
        on duplicate key update counter = counter + 0`.execute(tx))
  }
  return true
}

/**
 * Differs by necessity: DDL commits by itself, so no transaction can hold a lock around it, and named locks
 * are per node in a Galera cluster. A row locked on a second connection says who migrates; it is let go when we die.
 */
async function exclusively<Tables, T>(db: Kysely<Tables>, lockTable: ReturnType<Dialect['table']>, diagnose: Dialect['diagnose'], work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  await sql`create table if not exists ${lockTable} (id integer primary key) engine = InnoDB`.execute(db)
  await retryTransient(diagnose, () => sql`insert into ${lockTable} (id) values (1) on duplicate key update id = id`.execute(db))
  return retryTransient(diagnose, () => db.transaction().setIsolationLevel('read committed').execute(async (lock) => {
    await sql`select id from ${lockTable} where id = 1 for update`.execute(lock)
    return work(db)
  }))
}

function ddl(collation: string, names: LedgerNames): Ddl {
  const id = (name: string) => sql.id(names.full(name))
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
    constraint: (name) => sql`${id(name)}`,
    async addColumn(db, table, column, definition) {
      // Differs by necessity: MySQL's ALTER TABLE cannot say IF NOT EXISTS; migrations run one at a time, so asking first is enough.
      const { rows } = await sql`
        select 1 from information_schema.columns
        where table_schema = database() and table_name = ${names.full(table)} and column_name = ${column}`.execute(db)
      if (rows.length === 0) await sql`alter table ${id(table)} add column ${sql.ref(column)} ${definition}`.execute(db)
    },
    async createIndex(db, { name, table, columns, unique }) {
      // Differs by necessity: there are no partial indexes (NULLs repeat in a unique one, which is all that is needed),
      // and MySQL's CREATE INDEX cannot say IF NOT EXISTS; migrations run one at a time, so asking first is enough.
      const { rows } = await sql<{ found: number }>`
        select count(*) as found from information_schema.statistics
        where table_schema = database() and table_name = ${names.full(table)} and index_name = ${names.full(name)}`.execute(db)
      if (Number(rows[0]!.found) > 0) return
      const kind = unique ? sql`unique index` : sql`index`
      await sql`create ${kind} ${id(name)} on ${id(table)} (${sql.join(columns.map((c) => sql.ref(c)))})`.execute(db)
    },
    async createView(db, name, query) {
      await sql`create or replace view ${id(name)} as ${query}`.execute(db)
    },
  }
}

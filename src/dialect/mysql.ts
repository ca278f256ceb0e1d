/** MySQL 8+ and, with the few differences named in mariadb.ts, MariaDB 10.6+. */
import { Kysely, MysqlDialect, sql } from 'kysely'
import { LedgerError } from '../model/errors.ts'
import { borrowFor } from './caller-connection.ts'
import type { ConnectOptions } from './connect-options.ts'
import type { Ddl } from './ddl.ts'
import type { Dialect } from './dialect.ts'
import { FENCED_RESOURCES, guardFence } from './fence-guard.ts'
import { goodbye } from './goodbye.ts'
import { batchVerbs } from './mysql-batch.ts'
import { mariadbCollation } from './mariadb.ts'
import type { LedgerNames } from './ledger-names.ts'
import { examineMysql } from './mysql-checkup.ts'
import { diagnose as diagnosed } from './mysql-errors.ts'
import { insertFenced, insertFencedStepwise } from './mysql-fenced.ts'
import { openPool } from './mysql-pool.ts'
import { deleteBy, outwaitClaims } from './mysql-prune.ts'
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
    insertFenced: (insert) => retryTransient(diagnose, () => (server.isCluster ? insertFencedStepwise : insertFenced)(db, table, insert)),
    on: async (connection) => names.on(await borrowFor<Tables>('mysql', connection)),
    guardFence: (on, resource, token) => guardFence('mysql', on as Kysely<unknown>, table(FENCED_RESOURCES), resource, token),
    outwaitClaims: (scopes) => outwaitClaims(transaction, table('task_fences'), server.isCluster, scopes),
    ...batchVerbs<Tables>(table, names, diagnose, instantText),
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
    exclusively: async (work) => (await import('./mysql-lock.ts')).exclusively(db, { table: table('runledger_lock'), diagnose }, server.isCluster, work),
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
  /** A node of Galera, whose locks are its own and which may roll back what others have certified against. */
  readonly isCluster: boolean
}

/** The first words on the line: who is there, and is it somebody we can work with? */
async function greet<Tables>(db: Kysely<Tables>, place: string): Promise<Server> {
  const { rows } = await sql<unknown>`select version() as version, @@sql_mode as mode; show global variables like 'wsrep_on'`.execute(db)
  const [[{ version, mode }], cluster] = rows as [[{ version: string; mode: string }], { Value: string }[]]
  if (mode.includes('NO_BACKSLASH_ESCAPES')) {
    throw new LedgerError('DATABASE_UNAVAILABLE', `${place}: sql_mode NO_BACKSLASH_ESCAPES is on; under it the driver cannot quote values safely`, { place, retryable: false })
  }
  const isMariadb = version.includes('MariaDB')
  checkVersion(isMariadb, version, place)
  const isCluster = cluster[0]?.Value === 'ON'
  return { product: `${isMariadb ? 'MariaDB' : 'MySQL'} ${version.split('-')[0]}`, collation: isMariadb ? mariadbCollation : MYSQL_COLLATION, isCluster }
}

function checkVersion(isMariadb: boolean, version: string, place: string): void {
  const [major = 0, minor = 0] = version.split('.').map((part) => parseInt(part, 10))
  const enough = isMariadb ? major > 10 || (major === 10 && minor >= 6) : major >= 8
  if (!enough) throw new LedgerError('DATABASE_UNAVAILABLE', `${place} runs version ${version}; MySQL 8 or MariaDB 10.6 is the oldest that has SKIP LOCKED`, { place, version, retryable: false })
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

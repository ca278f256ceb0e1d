/** MySQL 8+ and, with the few differences named in mariadb.ts, MariaDB 10.6+. */
import { Kysely, MysqlDialect, sql, type MysqlPool, type MysqlPoolConnection } from 'kysely'
import type { Pool, PoolConnection, PoolOptions } from 'mysql2'
import { LedgerError } from '../model/errors.ts'
import { borrowFor } from './caller-connection.ts'
import type { ConnectOptions } from './connect-options.ts'
import { FLOOR_SCOPE, type Diagnosis, type Dialect, type FencedInsert } from './dialect.ts'
import { FENCED_RESOURCES, guardFence } from './fence-guard.ts'
import { mariadbCollation } from './mariadb.ts'
import { mysqlDdl } from './mysql-ddl.ts'
import { networkProblem } from './network-problem.ts'
import { retryTransient } from './retry.ts'
import { tlsOptions } from './tls.ts'
import { unreachable } from './unreachable.ts'
import { placeOf, type ServerAddress } from './url.ts'

/** Byte for byte, trailing spaces and case included: the collations of MySQL 8 that end in `_bin` alone pad. */
const MYSQL_COLLATION = 'utf8mb4_0900_bin'

export async function mysql<Tables>(address: ServerAddress, options: ConnectOptions): Promise<Dialect<Tables>> {
  const { createPool } = await import('mysql2')
  const pool = createPool(poolOptions(address, options))
  const db = new Kysely<Tables>({ dialect: new MysqlDialect({ pool: discarding(pool, options.statementTimeoutMs) }), ...(options.log && { log: options.log }) })
  const place = placeOf(address)
  const server = await greet(db, place).catch((error: unknown) => {
    pool.end(() => {})
    throw unreachable(diagnose, `MySQL at ${place}`, error)
  })

  const dialect: Dialect<Tables> = {
    place: `${server.product} at ${place}`,
    db,
    ddl: mysqlDdl(server.collation),
    table: (name) => sql`${sql.id(name)}`,
    transaction: (work) => retryTransient(diagnose, () => db.transaction().setIsolationLevel('read committed').execute(work)),
    statement: (work) => retryTransient(diagnose, () => work(db)),
    insertFenced: (insert) => retryTransient(diagnose, () => insertFenced(db, insert)),
    on: (connection) => borrowFor<Tables>('mysql', connection),
    guardFence: (on, resource, token) => guardFence('mysql', on as Kysely<unknown>, sql.table(FENCED_RESOURCES), resource, token),
    skipLocked: (query) => query.forUpdate().skipLocked(),
    now: () => (options.clock ? sql`(utc_timestamp(6) + interval ${sql.lit(Math.round(options.clock.offsetMs) * 1000)} microsecond)` : sql`utc_timestamp(6)`),
    plusSeconds: (instant, seconds) => sql`timestampadd(microsecond, round(${seconds} * 1e6), ${instant})`,
    secondsBetween: (from, to) => sql`(timestampdiff(microsecond, ${from}, ${to}) / 1e6)`,
    instant: (date) => sql`cast(${date.toISOString().slice(0, -1).replace('T', ' ')} as datetime(6))`,
    readInstant: (value) => (value instanceof Date ? value : null),
    diagnose,
    exclusively: (work) => exclusively(db, work),
    close: () => db.destroy(),
  }
  return dialect
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
    throw new LedgerError('DATABASE_UNAVAILABLE', `${place}: sql_mode NO_BACKSLASH_ESCAPES is on; under it the driver cannot quote values safely`, { place })
  }
  const isMariadb = version.includes('MariaDB')
  checkVersion(isMariadb, version, place)
  return isMariadb ? { product: `MariaDB ${version.split('-')[0]}`, collation: mariadbCollation } : { product: `MySQL ${version.split('-')[0]}`, collation: MYSQL_COLLATION }
}

function checkVersion(isMariadb: boolean, version: string, place: string): void {
  const [major = 0, minor = 0] = version.split('.').map((part) => parseInt(part, 10))
  const enough = isMariadb ? major > 10 || (major === 10 && minor >= 6) : major >= 8
  if (!enough) throw new LedgerError('DATABASE_UNAVAILABLE', `${place} runs version ${version}; MySQL 8 or MariaDB 10.6 is the oldest that has SKIP LOCKED`, { place, version })
}

/**
 * Differs by necessity: no data-changing statement returns rows to another, so this is a small script, sent in one
 * round trip. The upsert locks the scope's row first; `last_insert_id(…)` carries the new fence to the insert.
 * (ON DUPLICATE KEY serves the counter here; the claim itself is a plain INSERT whose violation is heard.)
 */
async function insertFenced<Tables>(db: Kysely<Tables>, { scope, table, values, unless }: FencedInsert): Promise<bigint | null> {
  const columns = Object.keys(values)
  return db.connection().execute(async (connection) => {
    try {
      const { rows } = await sql<unknown>`
        set transaction isolation level read committed; start transaction;
        insert into task_fences (scope, counter)
          select ${scope}, last_insert_id(coalesce((select counter from task_fences where scope = ${FLOOR_SCOPE}), 0) + 1) from dual
          on duplicate key update counter = last_insert_id(counter + 1);
        insert into ${sql.table(table)} (${sql.join(columns.map((c) => sql.ref(c)))}, fence)
          select ${sql.join(Object.values(values))}, last_insert_id() from dual where not exists (${unless});
        select row_count() as inserted, last_insert_id() as fence;
        commit`.execute(connection)
      const [{ inserted, fence }] = rows[4] as [{ inserted: number | string; fence: number | string }]
      return Number(inserted) === 1 ? BigInt(fence) : null
    } catch (error) {
      // Whatever stopped the script left its transaction open on this connection.
      await sql`rollback`.execute(connection).catch(() => {}) // Fails only on a dead connection, which is then discarded.
      throw error
    }
  })
}

/**
 * Differs by necessity: DDL commits by itself, so no transaction can hold a lock around it, and named locks
 * are per node in a Galera cluster. A row locked on a second connection says who migrates; it is let go when we die.
 */
async function exclusively<Tables, T>(db: Kysely<Tables>, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  await sql`create table if not exists runledger_lock (id integer primary key) engine = InnoDB`.execute(db)
  await retryTransient(diagnose, () => sql`insert into runledger_lock (id) values (1) on duplicate key update id = id`.execute(db))
  return retryTransient(diagnose, () => db.transaction().setIsolationLevel('read committed').execute(async (lock) => {
    await sql`select id from runledger_lock where id = 1 for update`.execute(lock)
    return work(db)
  }))
}

function poolOptions(address: ServerAddress, options: ConnectOptions): PoolOptions {
  const tls = tlsOptions(address.tls, address.host)
  return {
    ...(address.host.startsWith('/') ? { socketPath: address.host } : { host: address.host, port: address.port }),
    ...(address.user !== undefined && { user: address.user }),
    ...(address.password !== undefined && { password: address.password }),
    ...(address.database !== undefined && { database: address.database }),
    ...(tls !== false && { ssl: tls }),
    charset: 'utf8mb4',
    timezone: 'Z',
    flags: ['FOUND_ROWS'], // Affected rows are matched rows, whatever the URL says.
    multipleStatements: true,
    supportBigNumbers: true,
    bigNumberStrings: true,
    jsonStrings: true,
    connectionLimit: options.poolMax,
    connectTimeout: options.connectTimeoutMs,
    enableKeepAlive: true,
    waitForConnections: true,
  }
}

/** The pool as Kysely wants it; a connection that failed under us is destroyed, not handed to the next query. */
function discarding(pool: Pool, timeout: number): MysqlPool {
  return {
    end: (callback) => pool.end(callback),
    getConnection(callback) {
      pool.getConnection((error: NodeJS.ErrnoException | null, connection: PoolConnection) => {
        if (error) callback(error, undefined as never)
        else callback(null, discardingConnection(connection, timeout))
      })
    },
  }
}

function discardingConnection(connection: PoolConnection, timeoutMs: number): MysqlPoolConnection {
  let broken: Error | undefined
  const onError = (error: Error) => void (broken ??= error) // A checked-out connection that dies while idle would otherwise crash us.
  connection.on('error', onError)
  const destroy = () => connection.destroy()
  const query = (text: string, values: unknown[], callback: (error: unknown, result?: unknown) => void) => {
    if (broken) return callback(broken) // A rollback would wait as long again.
    const answer = (error: unknown, result?: unknown) => {
      clearTimeout(timer)
      if (error instanceof Error && diagnose(error).kind === 'unavailable') broken ??= error
      callback(error, result)
    }
    // The driver's own timeout outlives a lost connection, and keeps the process alive for as long.
    const timer = setTimeout(answer, timeoutMs, Object.assign(new Error('the statement was not answered'), { code: 'PROTOCOL_SEQUENCE_TIMEOUT' }))
    connection.query(text, values, answer)
  }
  return {
    config: connection.config,
    threadId: connection.threadId,
    connect: () => {},
    destroy,
    query: query as MysqlPoolConnection['query'],
    release() {
      connection.off('error', onError)
      if (broken) destroy()
      else connection.release()
    },
  }
}

const TRANSIENT = new Set([1213, 1205, 1020, 1317, 3024, 3572])
const REFUSED: ReadonlyMap<number, string> = new Map([
  [1044, 'the server refused this user'],
  [1045, 'the server refused this user or password'],
  [1049, 'the database does not exist'],
  [1142, 'this user lacks a right on the tables of the ledger'],
  [1143, 'this user lacks a right on the tables of the ledger'],
  [1698, 'the server refused this user'],
])
const UNAVAILABLE: ReadonlyMap<number, string> = new Map([
  [1040, 'the server has no connection left'],
  [1047, 'this node is not part of its cluster'],
  [1053, 'the server is shutting down'],
  [1129, 'the server blocked this host'],
  [1290, 'the database is read-only'],
  [1792, 'the database is read-only'],
  [1836, 'the database is read-only'],
  [1927, 'the server closed the connection'],
  [3169, 'the server closed the connection'],
  [4031, 'the server closed the connection'],
])
const DUPLICATE = new Set([1062, 1586])
const NO_TABLE = new Set([1146, 1054])

export function diagnose(error: unknown): Diagnosis {
  if (!(error instanceof Error)) return { kind: 'other' }
  const { errno, message } = error as Error & { errno?: number }
  if (errno !== undefined && DUPLICATE.has(errno)) return { kind: 'duplicate', constraint: violated(message) }
  if (errno !== undefined && TRANSIENT.has(errno)) return { kind: 'transient' }
  if (errno !== undefined && NO_TABLE.has(errno)) return { kind: 'no_table' }
  const refusal = REFUSED.get(errno ?? 0)
  if (refusal !== undefined) return { kind: 'refused', problem: refusal }
  const problem = UNAVAILABLE.get(errno ?? 0) ?? networkProblem(error)
  return problem === undefined ? { kind: 'other' } : { kind: 'unavailable', problem }
}

// «Duplicate entry '…' for key 'task_runs.PRIMARY'» (MySQL) or «… for key 'PRIMARY'» (MariaDB): the last quoted word.
function violated(message: string): string {
  const name = /for key '([^']*)'$/.exec(message)?.[1]?.split('.').at(-1) ?? ''
  return name === 'PRIMARY' ? 'primary' : name
}

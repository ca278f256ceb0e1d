/** A connection or transaction that the caller opened, spoken to through Kysely; it is used, never begun, ended or closed. */
import { Kysely, MysqlAdapter, MysqlDialect, PostgresAdapter, PostgresDialect, SqliteAdapter, type MysqlPool, type PostgresPool } from 'kysely'
import type { DatabaseSync } from 'node:sqlite'
import { invalidOption } from '../model/errors.ts'

/**
 * A Kysely transaction (any plugins, any schema), a `pg` client, a `mysql2` connection of either API, or a
 * `DatabaseSync` of `node:sqlite`; in each case with a transaction of the caller's open on it. Never a pool, whose
 * statements would each land on another connection.
 */
export type CallerConnection = object

export type Engine = 'postgres' | 'mysql' | 'sqlite'

export interface Borrowed {
  readonly engine: Engine
  readonly db: Kysely<unknown>
}

/** @throws INVALID_OPTION for anything that is not one of the above, and where it can be seen that no transaction is open */
export async function borrow(connection: CallerConnection): Promise<Borrowed> {
  if (isKysely(connection)) return borrowKysely(connection)
  if (isPg(connection)) return { engine: 'postgres', db: new Kysely({ dialect: new PostgresDialect({ pool: pgPool(connection) }) }) }
  const mysql = mysqlConnection(connection)
  if (mysql) return { engine: 'mysql', db: new Kysely({ dialect: new MysqlDialect({ pool: mysqlPool(mysql) }) }) }
  if (isSqlite(connection)) return borrowSqlite(connection)
  throw invalidOption('connection', 'must be a Kysely transaction, a pg client, a mysql2 connection or a node:sqlite DatabaseSync (not a pool)')
}

/** @throws INVALID_OPTION when the connection is another database's than the one expected */
export async function borrowFor<Tables>(engine: Engine, connection: CallerConnection): Promise<Kysely<Tables>> {
  const borrowed = await borrow(connection)
  if (borrowed.engine !== engine) throw invalidOption('connection', `belongs to another kind of database (${borrowed.engine}) than the ledger (${engine})`)
  return borrowed.db as Kysely<Tables>
}

function isKysely(connection: object): connection is Kysely<unknown> {
  return 'getExecutor' in connection && 'isTransaction' in connection
}

function borrowKysely(connection: Kysely<unknown>): Borrowed {
  if (!connection.isTransaction) throw invalidOption('connection', 'is a Kysely without a transaction; pass the trx of db.transaction()')
  const { adapter } = connection.getExecutor()
  const engines: readonly [Engine, abstract new () => object][] = [['postgres', PostgresAdapter], ['mysql', MysqlAdapter], ['sqlite', SqliteAdapter]]
  // By name too: the caller's Kysely may be another copy of the package.
  const found = engines.find(([, Adapter]) => adapter instanceof Adapter || adapter.constructor.name === Adapter.name)
  if (!found) throw invalidOption('connection', `is a Kysely on a database that the ledger does not know (${adapter.constructor.name})`)
  return { engine: found[0], db: connection.withoutPlugins() }
}

interface PgClient {
  query(text: string, values: readonly unknown[]): Promise<unknown>
}

/** A pg.Pool has a query() too, but no connection of its own. */
function isPg(connection: object): connection is PgClient {
  return 'query' in connection && 'connectionParameters' in connection && 'connection' in connection
}

function pgPool(client: PgClient): PostgresPool {
  const lent = { query: (text: string, values: readonly unknown[]) => client.query(text, values), release() {} }
  return { Client: undefined as never, options: {}, connect: async () => lent as never, end: async () => {} }
}

interface MysqlCore {
  query(text: string, values: unknown, callback: (error: unknown, result: unknown) => void): unknown
  readonly threadId: number
}

/** The callback connection, also when the caller has its promise wrapper. */
function mysqlConnection(connection: object): MysqlCore | null {
  const core = 'connection' in connection && !('promise' in connection) ? connection.connection : connection
  return typeof core === 'object' && core !== null && 'query' in core && 'threadId' in core && 'promise' in core ? (core as MysqlCore) : null
}

function mysqlPool(core: MysqlCore): MysqlPool {
  const lent = {
    threadId: core.threadId,
    config: {},
    connect() {},
    destroy() {},
    release() {},
    query: (text: string, values: unknown, callback: (error: unknown, result: unknown) => void) => core.query(text, values, callback),
  }
  return { end: (callback) => callback(undefined), getConnection: (callback) => callback(undefined as never, lent as never) }
}

function isSqlite(connection: object): connection is DatabaseSync {
  return 'prepare' in connection && 'exec' in connection && 'isTransaction' in connection
}

async function borrowSqlite(connection: DatabaseSync): Promise<Borrowed> {
  if (!connection.isTransaction) throw invalidOption('connection', 'has no transaction open; begin one first')
  const { nodeSqliteDialect } = await import('./sqlite-driver.ts')
  return { engine: 'sqlite', db: new Kysely({ dialect: nodeSqliteDialect(connection) }) }
}

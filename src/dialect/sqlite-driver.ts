/**
 * `node:sqlite` behind Kysely. Kysely's own driver begins transactions that upgrade from reader to writer, which SQLite
 * refuses at once when somebody else wrote meanwhile (vjt/grappa-irc#524); here every transaction begins as the writer.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import {
  CompiledQuery,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
} from 'kysely'

export function nodeSqliteDialect(file: DatabaseSync): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new NodeSqliteDriver(file),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

/** One connection, handed out to one user at a time: a transaction spans awaits, and nobody may slip in between. */
class NodeSqliteDriver implements Driver {
  readonly #file: DatabaseSync
  readonly #connection: NodeSqliteConnection
  #free: Promise<void> = Promise.resolve()
  #release: () => void = () => {}

  constructor(file: DatabaseSync) {
    this.#file = file
    this.#connection = new NodeSqliteConnection(file)
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    const before = this.#free
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#free = promise
    await before
    this.#release = resolve
    return this.#connection
  }

  async releaseConnection(): Promise<void> {
    this.#release()
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'))
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // After some errors SQLite has rolled back by itself, and a second rollback would hide the first error.
    if (this.#file.isTransaction) await connection.executeQuery(CompiledQuery.raw('rollback'))
  }

  async destroy(): Promise<void> {
    if (this.#file.isOpen) this.#file.close()
  }
}

/** The ledger has some dozens of statements; what varies in them is mostly a parameter. */
const MOST_PREPARED = 100

interface Prepared {
  readonly statement: StatementSync
  readonly returnsRows: boolean
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #file: DatabaseSync
  /** By their text, the one used longest ago first. */
  readonly #prepared = new Map<string, Prepared>()

  constructor(file: DatabaseSync) {
    this.#file = file
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const { statement, returnsRows } = this.#prepare(query.sql)
    const values = query.parameters.map(sqliteValue)
    if (returnsRows) return { rows: statement.all(...values).map(plainRow) as R[] }
    const { changes, lastInsertRowid } = statement.run(...values)
    return { rows: [], numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid) }
  }

  #prepare(text: string): Prepared {
    const known = this.#prepared.get(text)
    const prepared = known ?? this.#compile(text)
    this.#prepared.delete(text)
    this.#prepared.set(text, prepared)
    if (!known && this.#prepared.size > MOST_PREPARED) this.#prepared.delete(this.#prepared.keys().next().value!)
    return prepared
  }

  #compile(text: string): Prepared {
    const statement = this.#file.prepare(text)
    statement.setReadBigInts(true)
    return { statement, returnsRows: statement.columns().length > 0 }
  }

  // eslint-disable-next-line require-yield -- the interface asks for a stream; nothing in the ledger streams
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('the SQLite driver of the ledger does not stream')
  }
}

/**
 * node:sqlite takes an object in first place for a bag of named parameters and silently shifts the others, so nothing
 * but a real SQLite value may pass.
 */
function sqliteValue(value: unknown, index: number): SQLInputValue {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') return value
  if (typeof value === 'boolean') return value ? 1 : 0
  if (value instanceof Uint8Array) return value
  throw new TypeError(`SQLite parameter ${index + 1}: cannot bind ${Object.prototype.toString.call(value)}`)
}

/** Integers as numbers where a number can hold them; only a larger one (a fence, perhaps) stays a bigint. */
function plainRow(row: Record<string, unknown>): Record<string, unknown> {
  const plain: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(row)) {
    plain[name] = typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value
  }
  return plain
}

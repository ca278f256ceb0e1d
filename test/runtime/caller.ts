/** A program's own connections to the database of the ledger, each with a transaction open: what callers of completeIn and fence.guard have. */
import { DatabaseSync } from 'node:sqlite'
import { Kysely, MysqlDialect, PostgresDialect, sql, type ControlledTransaction } from 'kysely'
import { createPool } from 'mysql2'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { nodeSqliteDialect } from '../../src/dialect/sqlite-driver.ts'
import type { DatabaseName } from '../support/databases.ts'

export interface Caller {
  readonly title: string
  /** What is handed to the ledger. */
  readonly connection: object
  run(statement: string): Promise<void>
  commit(): Promise<void>
  rollback(): Promise<void>
}

type Open = (url: string) => Promise<Caller>

/** Every kind of connection that a program on this database may have. */
export function callersOf(name: DatabaseName): readonly Open[] {
  return { sqlite: [openFile, openKysely], postgres: [openPg, openKysely], mariadb: [openMysqlPromise, openMysql, openKysely], mysql: [openMysqlPromise, openMysql, openKysely] }[name]
}

async function openFile(url: string): Promise<Caller> {
  const file = new DatabaseSync(url.slice('sqlite:'.length), { timeout: 5000 })
  return plain('node:sqlite', file, async (statement) => file.exec(statement), async () => file.close(), 'begin immediate')
}

async function openPg(url: string): Promise<Caller> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return plain('pg', client, async (statement) => void (await client.query(statement)), () => client.end())
}

async function openMysqlPromise(url: string): Promise<Caller> {
  const connection = await mysql.createConnection({ uri: url, flags: ['-FOUND_ROWS'] })
  return plain('mysql2/promise without FOUND_ROWS', connection, async (statement) => void (await connection.query(statement)), () => connection.end())
}

async function openMysql(url: string): Promise<Caller> {
  const pool = createPool({ uri: url })
  const connection = await pool.promise().getConnection()
  return plain('mysql2 with callbacks', connection.connection, async (statement) => void (await connection.query(statement)), () => pool.promise().end())
}

async function plain(title: string, connection: object, run: Caller['run'], close: () => Promise<void>, begin = 'begin'): Promise<Caller> {
  const end = async (statement: string) => {
    await run(statement)
    await close()
  }
  await run(begin)
  return { title, connection, run, commit: () => end('commit'), rollback: () => end('rollback') }
}

async function openKysely(url: string): Promise<Caller> {
  const db = new Kysely<unknown>({ dialect: dialectOf(url) })
  const trx: ControlledTransaction<unknown> = await db.startTransaction().execute()
  const end = async (last: Promise<void>) => {
    await last
    await db.destroy()
  }
  return {
    title: 'kysely',
    connection: trx,
    run: async (statement) => void (await sql.raw(statement).execute(trx)),
    commit: () => end(trx.commit().execute()),
    rollback: () => end(trx.rollback().execute()),
  }
}

function dialectOf(url: string) {
  if (url.startsWith('sqlite:')) return nodeSqliteDialect(new DatabaseSync(url.slice('sqlite:'.length), { timeout: 5000 }))
  return url.startsWith('postgres:') ? new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }) : new MysqlDialect({ pool: createPool({ uri: url }) })
}

/** Suites that only concern databases behind a network, with what an administrator and other people's sessions do there. */
import { randomBytes } from 'node:crypto'
import { after, before } from 'node:test'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { eachDatabase, type DatabaseName, type Row, type SuiteOptions, type TestDatabase } from './databases.ts'
import { Bench } from './ledgers.ts'

export type ServerName = Exclude<DatabaseName, 'sqlite'>

export interface TestServer extends TestDatabase {
  readonly name: ServerName
}

export function eachServer(title: string, suite: (db: TestServer) => void, options: SuiteOptions = {}): void {
  eachDatabase(title, (db) => {
    if (db.name !== 'sqlite') suite(db as TestServer)
  }, options)
}

/** On a migrated ledger of every server: one database for the whole suite, a task of its own for each test. */
export function eachServerLedger(title: string, suite: (bench: Bench, db: TestServer) => void, options: SuiteOptions = {}): void {
  eachServer(title, (db) => {
    const bench = new Bench(db)
    before(() => bench.prepare())
    after(() => bench.close())
    suite(bench, db)
  }, options)
}

/** Somebody else's session: it keeps its transaction and its locks until it ends. */
export interface Session {
  query(sql: string): Promise<Row[]>
  end(): Promise<void>
}

export async function session(url: string): Promise<Session> {
  if (url.startsWith('postgres')) {
    const client = new pg.Client(url)
    client.on('error', () => {})
    await client.connect()
    return { query: async (sql) => (await client.query<Row>(sql)).rows, end: () => client.end() }
  }
  const connection = await mysql.createConnection({ uri: url, timezone: 'Z' })
  connection.on('error', () => {})
  return { query: async (sql) => (await connection.query<mysql.RowDataPacket[]>(sql))[0], end: () => connection.end() }
}

/** Ends every session on the database, idle or at work, as a restart does. @returns how many */
export async function killSessions(db: TestServer, url: string): Promise<number> {
  const database = new URL(url).pathname.slice(1)
  if (db.name === 'postgres') return (await db.admin(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}' and pid <> pg_backend_pid()`, url)).length
  const sessions = await db.admin(`select id from information_schema.processlist where db = '${database}' and id <> connection_id()`, url)
  for (const { id } of sessions) await db.admin(`kill ${String(id)}`, url).catch(() => {}) // It may have ended by itself meanwhile.
  return sessions.length
}

/** Makes a user who may do everything in this one database and nothing else; the URL has its name and password. */
export async function userUrl(db: TestServer, url: string, password: string): Promise<string> {
  const name = `runledger_${randomBytes(4).toString('hex')}`
  const database = new URL(url).pathname.slice(1)
  const quoted = `'${password.replaceAll("'", "''")}'`
  await db.admin(
    db.name === 'postgres'
      ? `create role ${name} login password ${quoted}; alter database ${database} owner to ${name}; grant all on schema public to ${name}`
      : `create user ${name}@'%' identified by ${quoted}; grant all on ${database}.* to ${name}@'%'`,
    url,
  )
  const theirs = new URL(url)
  theirs.username = name
  theirs.password = ''
  return theirs.href.replace('@', `:${percentEncoded(password)}@`)
}

function percentEncoded(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** One suite on every database. A server that should be there and is not fails the suite; it is never skipped quietly. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, it } from 'node:test'
import mysql from 'mysql2/promise'
import pg from 'pg'

export type DatabaseName = 'sqlite' | 'postgres' | 'mariadb' | 'mysql'

export type Row = Record<string, unknown>

export interface TestDatabase {
  readonly name: DatabaseName
  /** A new, empty database of its own at every call; it is dropped after the suite. */
  url(): Promise<string>
  /**
   * Runs raw SQL past the product, and past a pooler, in the database that url() gave last or in the one named. Several statements may be joined
   * by `;`: the rows are the last one's. Numbers are numbers on every database; instants are what the driver makes of them.
   */
  admin(sql: string, url?: string): Promise<Row[]>
}

/** Where databases are made: a server, or the disk. */
export interface Place {
  create(): Promise<string>
  drop(url: string): Promise<void>
  query(url: string, sql: string): Promise<Row[]>
}

const places: Record<DatabaseName, () => Place> = {
  sqlite: () => ({ create: createFile, drop: dropFile, query: querySqlite }),
  postgres: () => server(serverUrl('POSTGRES'), queryPostgres, 'with (force)'),
  mariadb: () => server(serverUrl('MARIADB'), queryMysql),
  mysql: () => server(serverUrl('MYSQL'), queryMysql),
}

/** For programs that are no tests: what is made there they drop themselves. */
export function placeOf(name: DatabaseName): Place {
  return places[name]()
}

export interface SuiteOptions {
  /** The databases at the same time, for suites that mostly wait. They share the file's variables and its event loop, so none may block it. */
  readonly atOnce?: boolean
}

export function eachDatabase(title: string, suite: (db: TestDatabase) => void, { atOnce = false }: SuiteOptions = {}): void {
  const all = () => (Object.keys(places) as DatabaseName[]).forEach((name) => onDatabase(title, name, suite))
  if (atOnce) describe(title, { concurrency: true }, all)
  else all()
}

function onDatabase(title: string, name: DatabaseName, suite: (db: TestDatabase) => void): void {
  describe(`${title} [${name}]`, { concurrency: false }, () => {
    const skip = reasonToSkip(name)
    if (skip === undefined) suite(testDatabase(name, places[name]()))
    else it('every test of the suite', { skip }, () => {})
  })
}

function reasonToSkip(name: DatabaseName): string | undefined {
  const { RUNLEDGER_TEST_MISSING: missing, RUNLEDGER_TEST_ONLY: only } = process.env
  if (missing === name) return `${name} could not be fetched`
  return only === undefined || only === '' || only.split(' ').includes(name) ? undefined : 'left out by RUNLEDGER_TEST_ONLY'
}

function testDatabase(name: DatabaseName, place: Place): TestDatabase {
  const made: string[] = []
  after(async () => {
    await Promise.all(made.map((url) => place.drop(url)))
  })
  return {
    name,
    async url() {
      const url = await place.create()
      made.push(url)
      return url
    },
    async admin(sql, url = made.at(-1)) {
      if (url === undefined) throw new Error('admin() before url(): there is no database yet')
      return await place.query(url, sql)
    },
  }
}

async function createFile(): Promise<string> {
  return `sqlite:${join(await mkdtemp(join(tmpdir(), 'runledger-')), 'ledger.db')}`
}

async function dropFile(url: string): Promise<void> {
  await rm(dirname(fileOf(url)), { recursive: true, force: true })
}

async function querySqlite(url: string, sql: string): Promise<Row[]> {
  const db = new DatabaseSync(fileOf(url), { timeout: 5000 })
  try {
    const statement = db.prepare(sql)
    if (statement.columns().length > 0) return statement.all().map((row) => ({ ...row }))
    db.exec(sql) // prepare() takes the first statement only
    return []
  } finally {
    db.close()
  }
}

function fileOf(url: string): string {
  return url.slice('sqlite:'.length)
}

function serverUrl(variable: string): URL {
  const url = process.env[`RUNLEDGER_TEST_${variable}`]
  if (url === undefined) throw new Error(`RUNLEDGER_TEST_${variable} is not set: run scripts/test, which starts the servers`)
  return new URL(url)
}

function server(admin: URL, query: Place['query'], dropOption = ''): Place {
  return {
    query,
    async create() {
      const name = `runledger_${randomBytes(6).toString('hex')}`
      await query(admin.href, `create database ${name}`)
      return new URL(`/${name}`, admin).href
    },
    async drop(url) {
      await query(admin.href, `drop database if exists ${new URL(url).pathname.slice(1)} ${dropOption}`)
    },
  }
}

/** Why a test on PostgreSQL must have the server itself, for `skip` where it is behind a pooler. */
export function notBehindPooler(reason: string): string | false {
  return process.env['RUNLEDGER_TEST_POOLED'] !== undefined && `needs the server itself: ${reason}`
}

/** Whether what tests see of this database is a pooler in front of it. */
export function isPooled(name: DatabaseName): boolean {
  return name === 'postgres' && process.env['RUNLEDGER_TEST_POOLED'] !== undefined
}

/** The same database at the server itself, where RUNLEDGER_TEST_POSTGRES is a pooler in front of it. */
function pastPooler(url: string): string {
  const server = process.env['RUNLEDGER_TEST_POOLED']
  const pooled = new URL(url)
  if (server === undefined || pooled.host !== serverUrl('POSTGRES').host) return url
  pooled.host = new URL(server).host
  return pooled.href
}

async function queryPostgres(url: string, sql: string): Promise<Row[]> {
  const { INT8, NUMERIC } = pg.types.builtins
  const getTypeParser = (oid: number, format?: 'text') => (oid === INT8 || oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format))
  const client = new pg.Client({ connectionString: pastPooler(url), types: { getTypeParser } as pg.CustomTypesConfig })
  await client.connect()
  try {
    const results: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await client.query<Row>(sql)
    return [results].flat().at(-1)?.rows ?? []
  } finally {
    await client.end()
  }
}

async function queryMysql(url: string, sql: string): Promise<Row[]> {
  const connection = await mysql.createConnection({ uri: url, multipleStatements: true, decimalNumbers: true, timezone: 'Z' })
  try {
    const [answer] = await connection.query<mysql.RowDataPacket[]>(sql)
    const several = Array.isArray(answer) && answer.length > 0 && answer.every(isAnswer)
    const last: unknown = several ? answer.at(-1) : answer
    return Array.isArray(last) ? last.map((row: Row) => ({ ...row })) : []
  } finally {
    await connection.end()
  }
}

/** Of one statement among several: its rows, or the header that stands for none. A row itself is neither. */
function isAnswer(part: object): boolean {
  return Array.isArray(part) || ('affectedRows' in part && 'serverStatus' in part)
}

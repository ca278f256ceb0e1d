/** The databases of a benchmark: a new, migrated ledger in each, and the way to it without the ledger. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { migrate } from '../../src/index.ts'

/** The bare driver with the ledger's own settings: as many connections, the same protocol, nothing on top. */
export interface Driver {
  query(sql: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
  /** The nth parameter in this database's SQL. */
  parameter(n: number): string
  /** Makes a table of the same shape and indexes as task_runs. */
  copyTable(name: string): Promise<void>
  close(): Promise<void>
}

export interface Place {
  readonly name: string
  readonly url: string
  driver(): Driver
}

/** As many as a ledger opens (dialect/connect.ts). */
const CONNECTIONS = 4

/** A ledger for each database there is a server for; the servers and what is in them go when scripts/bench ends. */
export async function places(): Promise<Place[]> {
  const found: Place[] = []
  if (process.env['RUNLEDGER_TEST_ONLY']?.split(' ').includes('sqlite') ?? true) {
    const path = join(mkdtempSync(join(tmpdir(), 'bench-')), 'ledger.db')
    found.push({ name: 'sqlite', url: `sqlite:${path}`, driver: () => sqliteDriver(path) })
  }
  for (const name of ['postgres', 'mariadb', 'mysql']) {
    const server = process.env[`RUNLEDGER_TEST_${name.toUpperCase()}`]
    const driverOf = name === 'postgres' ? postgresDriver : mysqlDriver
    if (server !== undefined) found.push(await newDatabase(name, server, driverOf))
  }
  for (const { url } of found) await migrate(url)
  return found
}

async function newDatabase(name: string, server: string, driverOf: (url: string) => Driver): Promise<Place> {
  const database = `bench_${randomBytes(4).toString('hex')}`
  const admin = driverOf(server)
  await admin.query(`create database ${database}`)
  await admin.close()
  const url = new URL(`/${database}`, server).href
  return { name, url, driver: () => driverOf(url) }
}

function postgresDriver(url: string): Driver {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  return {
    query: async (sql, values = []) => (await pool.query<Record<string, unknown>>(sql, [...values])).rows,
    parameter: (n) => `$${n}`,
    copyTable: async (name) => void (await pool.query(`create table ${name} (like task_runs including all)`)),
    close: () => pool.end(),
  }
}

function mysqlDriver(url: string): Driver {
  const pool = mysql.createPool({ uri: url, connectionLimit: CONNECTIONS, charset: 'utf8mb4', timezone: 'Z' })
  return {
    query: async (sql, values = []) => {
      const [rows] = await pool.query<mysql.RowDataPacket[]>(sql, [...values])
      return Array.isArray(rows) ? rows : []
    },
    parameter: () => '?',
    copyTable: async (name) => void (await pool.query(`create table ${name} like task_runs`)),
    close: () => pool.end(),
  }
}

function sqliteDriver(path: string): Driver {
  const file = new DatabaseSync(path)
  file.exec('pragma synchronous = full')
  const query: Driver['query'] = async (sql, values = []) => file.prepare(sql).all(...(values as SQLInputValue[]))
  return {
    query,
    parameter: () => '?',
    async copyTable(name) {
      const definitions = await query(`select sql from sqlite_schema where tbl_name = 'task_runs' and sql is not null`)
      for (const { sql } of definitions) file.exec(String(sql).replaceAll('task_runs', name))
    },
    close: async () => file.close(),
  }
}

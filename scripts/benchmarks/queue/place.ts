/** The databases of a measurement: new ones, filled, measured and dropped; and one system at work in a process of its own. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { migrate } from '../../../src/index.ts'
import type { Figures } from './side.ts'

const run = promisify(execFile)
const SIDE = join(import.meta.dirname, 'side.ts')

export interface Server {
  readonly name: string
  readonly url: string
}

/** How much is measured, and how often. */
export interface Terms {
  readonly jobs: number
  readonly turns: number
  /** A part of the crowds' full size. */
  readonly crowd: number
}

export const SERVERS: readonly Server[] = ['postgres', 'mariadb', 'mysql'].flatMap((name) => {
  const url = process.env[`RUNLEDGER_TEST_${name.toUpperCase()}`]
  return url === undefined ? [] : [{ name, url }]
})

export async function newDatabase(server: Server): Promise<string> {
  const name = `bench_${randomBytes(4).toString('hex')}`
  await ask(server.url, `create database ${name}`)
  return new URL(`/${name}`, server.url).href
}

export async function newLedger(server: Server): Promise<string> {
  const url = await newDatabase(server)
  await migrate(url)
  return url
}

export async function drop(server: Server, url: string): Promise<void> {
  await ask(server.url, `drop database ${new URL(url).pathname.slice(1)}${server.name === 'postgres' ? ' with (force)' : ''}`)
}

/** Enqueues so many jobs in bulk and works them off; then so many single ones at a gentle rate. */
export async function measureOn(url: string, side: string, mode: string, jobs: number, singles = 0): Promise<Figures> {
  const { stdout } = await run(process.execPath, [SIDE, side, mode, url, String(jobs), String(singles)], { maxBuffer: 64 * 1024 * 1024 })
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Figures
}

/** Of this project with its defaults, on a table that has been filled. */
export async function jobsASecond(url: string, jobs: number): Promise<number> {
  return jobs / (await measureOn(url, 'runledger', 'defaults', jobs)).workSeconds
}

export async function ask(url: string, text: string): Promise<Record<string, unknown>[]> {
  if (url.startsWith('postgres')) {
    const client = new pg.Client(url)
    await client.connect()
    const { rows } = await client.query<Record<string, unknown>>(text)
    await client.end()
    return rows
  }
  const connection = await mysql.createConnection(url)
  const [rows] = await connection.query<mysql.RowDataPacket[]>(text)
  await connection.end()
  return Array.isArray(rows) ? rows : []
}

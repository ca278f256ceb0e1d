/** A place of its own beside a database, for a ledger that is to go again: nothing of it touches what is there. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { sql, type RawBuilder } from 'kysely'
import { connect } from './connect.ts'
import { parseDatabaseUrl } from './url.ts'

export interface Scratch {
  /** Of an empty database. */
  readonly url: string
  /** For people: what would have to be removed by hand if this process cannot. */
  readonly name: string
  remove(): Promise<void>
}

/**
 * A schema on PostgreSQL, a database on MySQL and MariaDB, a file in a folder beside SQLite's.
 * @throws INVALID_OPTION; the driver's error where this user may not make one
 */
export async function makeScratch(url: string): Promise<Scratch> {
  const parsed = parseDatabaseUrl(url)
  if (parsed.kind === 'sqlite') return besideFile(parsed.path)
  const name = `runledger_selftest_${randomBytes(5).toString('hex')}`
  if (parsed.kind === 'postgres') {
    // The migration makes the schema.
    return { url: withParameter(url, 'schema', name), name: `schema ${name}`, remove: () => execute(url, sql`drop schema if exists ${sql.id(name)} cascade`) }
  }
  // Differs by necessity: a schema is a database here, so this takes the right to make one.
  await execute(url, sql`create database ${sql.id(name)}`)
  return { url: withPath(url, name), name: `database ${name}`, remove: () => execute(url, sql`drop database if exists ${sql.id(name)}`) }
}

/** On the same file system, which decides how a file behaves. */
function besideFile(path: string): Scratch {
  const beside = dirname(resolve(path))
  mkdirSync(beside, { recursive: true })
  const folder = mkdtempSync(join(beside, 'runledger-selftest-'))
  return { url: `sqlite:${join(folder, 'ledger.db')}`, name: `folder ${folder}`, remove: async () => rmSync(folder, { recursive: true, force: true }) }
}

async function execute(url: string, statement: RawBuilder<unknown>): Promise<void> {
  const database = await connect(url)
  try {
    await statement.execute(database.db)
  } finally {
    await database.close()
  }
}

// As text: what names several hosts is no URL to Node.
function withParameter(url: string, name: string, value: string): string {
  const [place = '', query] = url.split('?')
  const parameters = new URLSearchParams(query)
  parameters.set(name, value)
  return `${place}?${parameters.toString()}`
}

function withPath(url: string, database: string): string {
  return url.replace(/^([^:]+:\/\/[^/?]*)[^?]*/, `$1/${database}`)
}

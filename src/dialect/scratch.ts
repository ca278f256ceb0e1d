/** A place of its own beside a database, for a ledger that is to go again: nothing of it touches what is there. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { sql, type RawBuilder } from 'kysely'
import { connect } from './connect.ts'
import { dropLedger } from './drop-ledger.ts'
import { parseDatabaseUrl } from './url.ts'

export interface Scratch {
  /** Of an empty database. */
  readonly url: string
  /** For people: what would have to be removed by hand if this process cannot. */
  readonly name: string
  remove(): Promise<void>
}

/**
 * A schema on PostgreSQL, a database on MySQL and MariaDB, a file in a folder beside SQLite's; where this user may not
 * make one, tables with a prefix in the database that the URL names. @throws INVALID_OPTION; the driver's error
 */
export async function makeScratch(url: string): Promise<Scratch> {
  const parsed = parseDatabaseUrl(url)
  if (parsed.kind === 'sqlite') return besideFile(parsed.path)
  const name = `runledger_selftest_${randomBytes(5).toString('hex')}`
  if (parsed.kind === 'postgres') {
    const schema: Scratch = { url: withParameter(url, 'schema', name), name: `schema ${name}`, remove: () => execute(url, sql`drop schema if exists ${sql.id(name)} cascade`) }
    return (await mayMake(url, sql`create schema ${sql.id(name)}`)) ? schema : amongOthers(url)
  }
  // Differs by necessity: a schema is a database here.
  const database: Scratch = { url: withPath(url, name), name: `database ${name}`, remove: () => execute(url, sql`drop database if exists ${sql.id(name)}`) }
  return (await mayMake(url, sql`create database ${sql.id(name)}`)) ? database : amongOthers(url)
}

/** @returns false, with nothing made, when this user has no right to */
async function mayMake(url: string, statement: RawBuilder<unknown>): Promise<boolean> {
  const database = await connect(url)
  try {
    await statement.execute(database.db)
    return true
  } catch (error) {
    if (database.diagnose(error).kind !== 'refused') throw error
    return false
  } finally {
    await database.close()
  }
}

function amongOthers(url: string): Scratch {
  const prefix = `selftest_${randomBytes(4).toString('hex')}_`
  const theirs = withParameter(url, 'table_prefix', prefix)
  const remove = async () => {
    const database = await connect(theirs)
    try {
      await dropLedger(database)
    } finally {
      await database.close()
    }
  }
  return { url: theirs, name: `tables ${prefix}…`, remove }
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

/** SQLite in an embedded file: one host, one writer at a time, no server. */
import { closeSync, mkdirSync, openSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Kysely, sql } from 'kysely'
import { invalidOption } from '../model/errors.ts'
import { asTable, type AbsentRows } from './absent-rows.ts'
import { borrowFor } from './caller-connection.ts'
import type { ConnectOptions } from './connect-options.ts'
import { FLOOR_SCOPE, type Diagnosis, type Dialect, type FencedInsert, type Selected, type SelectedUpdate } from './dialect.ts'
import { FENCED_RESOURCES, guardFence } from './fence-guard.ts'
import { retryTransient } from './retry.ts'
import { nodeSqliteDialect } from './sqlite-driver.ts'
import { unreachable } from './unreachable.ts'

/** ISO 8601 with milliseconds: sorts as text, and SQLite's own date functions read it. */
const FORMAT = sql.lit('%Y-%m-%dT%H:%M:%fZ')

export async function sqlite<Tables>(path: string, options: ConnectOptions): Promise<Dialect<Tables>> {
  const file = await open(path)
  const db = new Kysely<Tables>({ dialect: nodeSqliteDialect(file), ...(options.log && { log: options.log }) })
  const transaction: Dialect<Tables>['transaction'] = (work) => retryTransient(diagnose, () => db.transaction().execute(work))

  const dialect: Dialect<Tables> = {
    place: `SQLite file ${path}`,
    db,
    ddl,
    table: (name) => sql`${sql.id(name)}`,
    transaction,
    statement: (work) => retryTransient(diagnose, () => work(db)),
    insertFenced: (insert) => transaction((tx) => insertFenced(tx, insert)),
    insertAbsent,
    on: (connection) => borrowFor<Tables>('sqlite', connection),
    guardFence: (on, resource, token) => guardFence('sqlite', on as Kysely<unknown>, sql.table(FENCED_RESOURCES), resource, token),
    // Differs by necessity: SQLite has no row locks; a writing transaction is alone, so there is nothing to pass over.
    updateSelected,
    // Differs by necessity: without statistics it takes the index whose columns are compared.
    trustIndexes: async () => {},
    locked: (query) => query,
    skipLocked: (query) => query,
    now: () => (options.clock ? sql`strftime(${FORMAT}, 'now', ${`${options.clock.offsetMs / 1000} seconds`})` : sql`strftime(${FORMAT}, 'now')`),
    plusSeconds: (instant, seconds) => sql`strftime(${FORMAT}, ${instant}, ${seconds} || ' seconds')`,
    // julianday, since unixepoch's 'subsec' is unknown to the sqlite3 program of many a host, and the views use this too.
    secondsBetween: (from, to) => sql`round((julianday(${to}) - julianday(${from})) * 86400, 3)`,
    instant: (date) => sql`${date.toISOString()}`,
    often: sql``,
    instantText: (date) => date.toISOString(),
    oneOf: (value, values) => sql`${value} in (select value from json_each(${JSON.stringify(values)}))`,
    // Differs by necessity: a file tells nobody that it was written to; the poll finds it.
    announce: async () => {},
    listen: () => ({ close: async () => {} }),
    readInstant: (value) => (typeof value === 'string' ? new Date(value) : null),
    diagnose,
    exclusively: (work) => transaction(work),
    close: () => db.destroy(),
  }
  return dialect
}

async function insertFenced<Tables>(tx: Kysely<Tables>, { scope, table, values, unless }: FencedInsert): Promise<bigint | null> {
  const raised = await sql<{ counter: number | bigint }>`
    insert into task_fences (scope, counter)
    select ${scope}, coalesce((select counter from task_fences where scope = ${FLOOR_SCOPE}), 0) + 1 where true
    on conflict (scope) do update set counter = counter + 1 returning counter`.execute(tx)
  const fence = BigInt(raised.rows[0]!.counter)
  const columns = Object.keys(values)
  const inserted = await sql`
    insert into ${sql.table(table)} (${sql.join(columns.map((c) => sql.ref(c)))}, fence)
    select ${sql.join(Object.values(values))}, ${fence} where not exists (${unless})`.execute(tx)
  return inserted.numAffectedRows === 1n ? fence : null
}

async function insertAbsent<Tables>(db: Kysely<Tables>, { table, key, columns, once, insert }: AbsentRows): Promise<string[]> {
  const { from, pick } = asTable(columns, rowsOfJson, ({ values }) => sql`${values[0] ?? null}`)
  const inserted = insert(pick)
  const { rows } = await sql<Record<string, string>>`
    with c as materialized (select ${sql.join(Object.entries(once).map(([name, value]) => sql`${value} as ${sql.ref(name)}`))})
    insert into ${sql.table(table)} (${sql.join(Object.keys(inserted).map((name) => sql.ref(name)))})
    select ${sql.join(Object.values(inserted))} from ${from}, c where true
    on conflict (${sql.ref(key)}) do nothing returning ${sql.ref(key)}`.execute(db)
  return rows.map((row) => row[key]!)
}

/**
 * Differs by necessity: no UPDATE gives back the rows as they were, so they are selected first. Nobody else writes in
 * between.
 */
async function updateSelected<Tables, O extends Selected>(tx: Kysely<Tables>, { table, select, set }: SelectedUpdate<Tables, O>): Promise<{ rows: O[]; updated: number }> {
  const { rows } = await tx.executeQuery<O>(select)
  const keys = rows.filter(({ mine }) => Number(mine) === 1).map((row) => row.task_key)
  if (keys.length === 0) return { rows, updated: 0 }
  const { numAffectedRows } = await sql`
    update ${sql.table(table)} set ${sql.join(Object.entries(set).map(([name, value]) => sql`${sql.ref(name)} = ${value}`))}
    where task_key in (select value from json_each(${JSON.stringify(keys)}))`.execute(tx)
  return { rows, updated: Number(numAffectedRows) }
}

function rowsOfJson(columns: readonly { name: string; values: readonly unknown[] }[]) {
  const json = JSON.stringify(columns[0]!.values.map((_, nth) => columns.map(({ values }) => values[nth])))
  const fields = columns.map(({ name }, index) => sql`json_extract(value, ${sql.lit(`$[${index}]`)}) as ${sql.ref(name)}`)
  return sql`(select ${sql.join(fields)} from json_each(${json})) r`
}

/** Opens (and makes, for its owner alone) the file in WAL mode, every commit flushed: what is acknowledged stays. */
async function open(path: string): Promise<DatabaseSync> {
  try {
    if (path !== ':memory:') prepareFile(resolve(path))
    return await retryTransient(diagnose, async () => {
      // timeout 0: waiting inside SQLite would stop the event loop and every heartbeat with it; we wait outside.
      const file = new DatabaseSync(path, { timeout: 0 })
      try {
        file.exec('pragma journal_mode = wal')
        file.exec('pragma synchronous = full')
        return file
      } catch (error) {
        file.close()
        throw error
      }
    })
  } catch (error) {
    throw unreachable(diagnose, `SQLite file ${path}`, error)
  }
}

function prepareFile(path: string): void {
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true, mode: 0o755 })
  refuseNetworkFileSystem(folder, path)
  closeSync(openSync(path, 'a', 0o640))
}

// statfs(2) magic numbers, from linux/magic.h and the file systems' own headers.
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x5346414f, 'AFS'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x01021997, '9p'],
  [0x7461636f, 'OCFS2'],
  [0x01161970, 'GFS2'],
])

/** Locks of a file that several hosts share cannot be trusted (sqlite.org/howtocorrupt.html, section 2.1). */
function refuseNetworkFileSystem(folder: string, path: string): void {
  const name = NETWORK_FILE_SYSTEMS.get(Number(statfsSync(folder, { bigint: true }).type) % 2 ** 32)
  if (name !== undefined) throw invalidOption('db', `${path} is on a network file system (${name}), whose locks cannot be trusted; use a local folder or a database server`)
}

const [BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB] = [5, 6, 8, 10, 11, 13, 14, 26]
const CONSTRAINT_PRIMARYKEY = 1555
const CONSTRAINT_UNIQUE = 2067

const BROKEN: ReadonlyMap<number | undefined, string> = new Map([
  [READONLY, 'it is read-only'],
  [IOERR, 'the disk failed'],
  [CORRUPT, 'it is damaged'],
  [CANTOPEN, 'it cannot be opened'],
  [NOTADB, 'it is not a SQLite database'],
])
const FILE_PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'a part of its path is not a folder',
  EEXIST: 'a part of its path is not a folder',
  ELOOP: 'its path goes in a circle',
  ENAMETOOLONG: 'its path is too long',
  EISDIR: 'it is a folder',
  ENOENT: 'its folder does not exist',
}

export function diagnose(error: unknown): Diagnosis {
  if (!(error instanceof Error)) return { kind: 'other' }
  const { errcode, code, message } = error as Error & { errcode?: number; code?: string }
  if (errcode === CONSTRAINT_PRIMARYKEY) return { kind: 'duplicate', constraint: 'primary' }
  // Differs by necessity: SQLite names the columns, not the index; our indexes are named table_column.
  if (errcode === CONSTRAINT_UNIQUE) return { kind: 'duplicate', constraint: (/failed: (.+)$/.exec(message)?.[1] ?? '').replaceAll('.', '_') }
  const primary = errcode === undefined ? undefined : errcode & 0xff
  if (primary === BUSY || primary === LOCKED) return { kind: 'transient' }
  if (primary === FULL || code === 'ENOSPC') return { kind: 'unavailable', problem: 'the disk is full' }
  const problem = BROKEN.get(primary) ?? (code !== undefined ? FILE_PROBLEMS[code] : undefined)
  // A file answers at once: waiting makes none of these better.
  if (problem !== undefined) return { kind: 'refused', problem }
  return { kind: /^no such (table|column)/.test(message) ? 'no_table' : 'other' }
}

const ddl: Dialect['ddl'] = {
  key: () => sql`text collate binary`,
  text: sql`text`,
  json: sql`text`,
  instant: sql`text`,
  integer: sql`integer`,
  bigint: sql`integer`,
  double: sql`real`,
  boolean: sql`integer`,
  numberedKey: sql`integer primary key autoincrement`,
  tableOptions: sql`strict`,
  async addColumn(db, table, column, definition) {
    // Differs by necessity: ALTER TABLE cannot say IF NOT EXISTS; a migration is alone, so asking first is enough.
    const { rows } = await sql`select 1 from pragma_table_info(${table}) where name = ${column}`.execute(db)
    if (rows.length === 0) await sql`alter table ${sql.id(table)} add column ${sql.ref(column)} ${definition}`.execute(db)
  },
  async createIndex(db, { name, table, columns, unique, where }) {
    const kind = unique ? sql`unique index` : sql`index`
    await sql`create ${kind} if not exists ${sql.id(name)} on ${sql.id(table)} (${sql.join(columns.map((c) => sql.ref(c)))}) ${where ? sql`where ${where}` : sql``}`.execute(db)
  },
  async createView(db, name, query) {
    await sql`drop view if exists ${sql.id(name)}`.execute(db)
    await sql`create view ${sql.id(name)} as ${query}`.execute(db)
  },
}

/** SQLite in an embedded file: one host, one writer at a time, no server. */
import { closeSync, mkdirSync, openSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Kysely, sql } from 'kysely'
import { invalidOption } from '../model/errors.ts'
import { borrowFor } from './caller-connection.ts'
import type { ConnectOptions } from './connect-options.ts'
import type { Ddl } from './ddl.ts'
import { deleteBy } from './delete-by.ts'
import { FLOOR_SCOPE, type Dialect, type FencedInsert } from './dialect.ts'
import { FENCED_RESOURCES, guardFence } from './fence-guard.ts'
import type { LedgerNames } from './ledger-names.ts'
import { retryTransient } from './retry.ts'
import { examineSqlite } from './sqlite-checkup.ts'
import { batchVerbs } from './sqlite-batch.ts'
import { nodeSqliteDialect } from './sqlite-driver.ts'
import { diagnose as diagnosed } from './sqlite-errors.ts'
import { unreachable } from './unreachable.ts'

/** ISO 8601 with milliseconds: sorts as text, and SQLite's own date functions read it. */
const FORMAT = sql.lit('%Y-%m-%dT%H:%M:%fZ')

export async function sqlite<Tables>(path: string, names: LedgerNames, options: ConnectOptions): Promise<Dialect<Tables>> {
  const diagnose: Dialect['diagnose'] = (error) => diagnosed(error, names)
  const file = await open(path, diagnose)
  const db = names.on(new Kysely<Tables>({ dialect: nodeSqliteDialect(file), ...(options.log && { log: options.log }) }))
  const table: Dialect['table'] = (name) => sql`${sql.id(names.full(name))}`
  const transaction: Dialect<Tables>['transaction'] = (work) => retryTransient(diagnose, () => db.transaction().execute(work))

  const dialect: Dialect<Tables> = {
    place: `SQLite file ${path}`,
    db,
    ddl: ddl(names),
    table,
    transaction,
    statement: (work) => retryTransient(diagnose, () => work(db)),
    insertFenced: (insert) => transaction((tx) => insertFenced(tx, table, insert)),
    on: async (connection) => names.on(await borrowFor<Tables>('sqlite', connection)),
    guardFence: (on, resource, token) => guardFence('sqlite', on as Kysely<unknown>, table(FENCED_RESOURCES), resource, token),
    // Differs by necessity: a claim is the one writer while it goes on, and is over before anybody else commits.
    outwaitClaims: async () => true,
    // Differs by necessity: SQLite has no row locks; a writing transaction is alone, so there is nothing to pass over.
    ...batchVerbs<Tables>(table),
    skipLocked: (query) => query,
    deleteBy: (on, by) => deleteBy(on, table, by),
    now: () => (options.clock?.offsetMs ? sql`strftime(${FORMAT}, 'now', ${`${options.clock.offsetMs / 1000} seconds`})` : sql`strftime(${FORMAT}, 'now')`),
    plusSeconds: (instant, seconds) => sql`strftime(${FORMAT}, ${instant}, ${seconds} || ' seconds')`,
    // julianday, since unixepoch's 'subsec' is unknown to the sqlite3 program of many a host, and the views use this too.
    secondsBetween: (from, to) => sql`round((julianday(${to}) - julianday(${from})) * 86400, 3)`,
    instant: (date) => sql`${date.toISOString()}`,
    readInstant: (value) => (typeof value === 'string' ? new Date(value) : null),
    diagnose,
    examine: async () => examineSqlite(file, path, names),
    // Differs by necessity: a file knows no users and no tables, only who may open it; and in WAL mode a reader writes too.
    grants: () => [
      `# A SQLite file has no users: who may use the ledger, for whatever, reads and writes the file and its folder.`,
      `# For the users of one group:`,
      `chgrp GROUP ${shellWord(dirname(resolve(path)))} ${shellWord(resolve(path))}*`,
      `chmod 2770 ${shellWord(dirname(resolve(path)))}`,
      `chmod 660 ${shellWord(resolve(path))}*`,
    ],
    exclusively: (work) => transaction(work),
    close: () => db.destroy(),
  }
  return dialect
}

async function insertFenced<Tables>(tx: Kysely<Tables>, tableOf: Dialect['table'], { scope, table, values, unless }: FencedInsert): Promise<bigint | null> {
  const raised = await sql<{ counter: number | bigint }>`
    insert into ${tableOf('task_fences')} (scope, counter)
    select ${scope}, coalesce((select counter from ${tableOf('task_fences')} where scope = ${FLOOR_SCOPE}), 0) + 1 where true
    on conflict (scope) do update set counter = counter + 1 returning counter`.execute(tx)
  const fence = BigInt(raised.rows[0]!.counter)
  const columns = Object.keys(values)
  const inserted = await sql`
    insert into ${tableOf(table)} (${sql.join(columns.map((c) => sql.ref(c)))}, fence)
    select ${sql.join(Object.values(values))}, ${fence} where not exists (${unless})`.execute(tx)
  return inserted.numAffectedRows === 1n ? fence : null
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** Opens (and makes, for its owner alone) the file in WAL mode, every commit flushed: what is acknowledged stays. */
async function open(path: string, diagnose: Dialect['diagnose']): Promise<DatabaseSync> {
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

function ddl(names: LedgerNames): Ddl {
  const id = (name: string) => sql.id(names.full(name))
  return {
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
    constraint: (name) => sql`${id(name)}`,
    async addColumn(db, table, column, definition) {
      // Differs by necessity: ALTER TABLE cannot say IF NOT EXISTS; a migration is alone, so asking first is enough.
      const { rows } = await sql`select 1 from pragma_table_info(${names.full(table)}) where name = ${column}`.execute(db)
      if (rows.length === 0) await sql`alter table ${id(table)} add column ${sql.ref(column)} ${definition}`.execute(db)
    },
    async createIndex(db, { name, table, columns, unique, where }) {
      const kind = unique ? sql`unique index` : sql`index`
      await sql`create ${kind} if not exists ${id(name)} on ${id(table)} (${sql.join(columns.map((c) => sql.ref(c)))}) ${where ? sql`where ${where}` : sql``}`.execute(db)
    },
    async createView(db, name, query) {
      await sql`drop view if exists ${id(name)}`.execute(db)
      await sql`create view ${id(name)} as ${query}`.execute(db)
    },
  }
}

/** PostgreSQL: what it does its own way. */
import { Kysely, PostgresDialect, sql, type PostgresPool, type PostgresPoolClient, type RawBuilder } from 'kysely'
import type { PoolClient, PoolConfig } from 'pg'
import { LedgerError } from '../model/errors.ts'
import { borrowFor } from './caller-connection.ts'
import type { ConnectOptions } from './connect-options.ts'
import type { Ddl } from './ddl.ts'
import { FLOOR_SCOPE, type Diagnosis, type Dialect, type FencedInsert } from './dialect.ts'
import { goodbye } from './goodbye.ts'
import { FENCED_RESOURCES, guardFence } from './fence-guard.ts'
import { networkProblem } from './network-problem.ts'
import { FORGOTTEN, OFTEN, preparing } from './postgres-prepared.ts'
import { retryTransient } from './retry.ts'
import { tlsOptions } from './tls.ts'
import { placeOf, type ServerAddress } from './url.ts'

const TIMESTAMPTZ = 1184
const INT8 = 20
/** Any constant of our own: two migrations of two ledgers in one database may well take turns. */
const MIGRATION_LOCK = 7_205_759_403

export async function postgres<Tables>(address: ServerAddress, options: ConnectOptions): Promise<Dialect<Tables>> {
  const { default: pg } = await import('pg')
  const schema = address.schema ?? 'public'
  const pool = new pg.Pool(poolConfig(address, options, pg.types))
  const connections = new Set<PoolClient>()
  pool.on('connect', (client) => connections.add(client))
  pool.on('remove', (client) => connections.delete(client))
  pool.on('error', () => {}) // An idle connection died; the pool has dropped it and the next query gets a new one.
  const plain = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: discarding(pool) }), ...(options.log && { log: options.log }) })
  const db = plain.withSchema(schema)

  const table = (name: string) => sql`${sql.id(schema, name)}`
  const dialect: Dialect<Tables> = {
    place: `PostgreSQL at ${placeOf(address)}`,
    db,
    ddl: ddl(table),
    table,
    transaction: (work) => retryTransient(diagnose, () => db.transaction().setIsolationLevel('read committed').execute(work)),
    statement: (work) => retryTransient(diagnose, () => work(db)),
    insertFenced: (insert) => retryTransient(diagnose, () => insertFenced(plain, table, insert)),
    on: async (connection) => (await borrowFor<Tables>('postgres', connection)).withSchema(schema),
    guardFence: (on, resource, token) => guardFence('postgres', on as Kysely<unknown>, table(FENCED_RESOURCES), resource, token),
    skipLocked: (query) => query.forUpdate().skipLocked(),
    now: () => (options.clock ? sql`(clock_timestamp() + ${options.clock.offsetMs} * interval '1 millisecond')` : sql`clock_timestamp()`),
    plusSeconds: (instant, seconds) => sql`(${instant} + ${seconds} * interval '1 second')`,
    secondsBetween: (from, to) => sql`extract(epoch from (${to} - ${from}))::float8`,
    instant: (date) => sql`${date}::timestamptz`,
    readInstant: (value) => (value instanceof Date ? value : null),
    diagnose,
    exclusively: (work) =>
      db.transaction().execute(async (tx) => {
        await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(tx)
        await createSchema(tx, schema)
        return work(tx)
      }),
    close: () => goodbye(() => db.destroy(), () => connections.forEach((client) => client.connection.stream.destroy())),
  }
  return dialect
}

/**
 * One statement: the upsert locks the scope's row, and the whole statement fails or succeeds together.
 * (ON CONFLICT serves the counter here; the claim itself is a plain INSERT whose violation is heard.)
 */
async function insertFenced<Tables>(db: Kysely<Tables>, tableOf: Dialect['table'], { scope, table, values, unless }: FencedInsert): Promise<bigint | null> {
  const columns = Object.keys(values)
  const { rows } = await sql<{ fence: bigint }>`${sql.raw(OFTEN)}
    with raised as (
      insert into ${tableOf('task_fences')} as f (scope, counter)
      select ${scope}, coalesce((select counter from ${tableOf('task_fences')} where scope = ${FLOOR_SCOPE}), 0) + 1
      on conflict (scope) do update set counter = f.counter + 1
      returning counter
    )
    insert into ${tableOf(table)} (${sql.join(columns.map((c) => sql.ref(c)))}, fence)
    select ${sql.join(Object.values(values))}, raised.counter from raised where not exists (${unless})
    returning fence`.execute(db)
  return rows[0]?.fence ?? null
}

// CREATE SCHEMA IF NOT EXISTS asks for the right to create one even when there is nothing to create.
async function createSchema<Tables>(tx: Kysely<Tables>, schema: string): Promise<void> {
  const { rows } = await sql`select 1 from pg_namespace where nspname = ${schema}`.execute(tx)
  if (rows.length === 0) await sql`create schema ${sql.id(schema)}`.execute(tx)
}

function poolConfig(address: ServerAddress, options: ConnectOptions, types: typeof import('pg').types): PoolConfig {
  return {
    host: address.host,
    port: address.port,
    ...(address.user !== undefined && { user: address.user }),
    ...(address.password !== undefined && { password: address.password }),
    ...(address.database !== undefined && { database: address.database }),
    ssl: tlsOptions(address.tls, address.host),
    max: options.poolMax,
    connectionTimeoutMillis: options.connectTimeoutMs,
    query_timeout: options.statementTimeoutMs,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    application_name: 'runledger',
    types: { getTypeParser: (oid: number, format?: 'text' | 'binary') => parserOf(types, oid, format) },
  }
}

// int8 comes as text from the driver unless told otherwise; a fence above 2^53 must not be rounded.
function parserOf(types: typeof import('pg').types, oid: number, format?: 'text' | 'binary'): (text: string) => unknown {
  if (oid === INT8) return BigInt
  if (oid === TIMESTAMPTZ) return readTimestamp
  return types.getTypeParser(oid, format as 'text')
}

// No SET could change the style for good: behind a transaction pooler the next statement is on another session.
function readTimestamp(text: string): Date {
  if (!/^\d{4,}-/.test(text)) throw new LedgerError('DATABASE_UNAVAILABLE', 'DateStyle is not ISO for this user or database; set it to ISO (alter role … set datestyle to iso)', { retryable: false })
  return new Date(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'))
}

/**
 * The pool as Kysely wants it, with one thing added: a connection that failed under us (reset, timed out while a black
 * hole swallowed it) is thrown away when released, not handed to the next query.
 */
function discarding(pool: import('pg').Pool): PostgresPool {
  const send = preparing()
  return {
    Client: undefined as never,
    options: {},
    end: () => pool.end(),
    async connect(): Promise<PostgresPoolClient> {
      const client = await pool.connect()
      let broken: unknown
      const onError = (error: Error) => void (broken ??= error) // A checked-out client that dies while idle would otherwise crash us.
      client.on('error', onError)
      return {
        query: (async (text: string, parameters: unknown[]) => {
          if (broken !== undefined) throw broken // A rollback would wait as long again.
          try {
            return await send(client, text, parameters)
          } catch (error) {
            if (diagnose(error).kind === 'unavailable') broken ??= error
            throw error
          }
        }) as unknown as PostgresPoolClient['query'],
        release() {
          client.off('error', onError)
          client.release(broken !== undefined)
        },
      }
    },
  }
}

const TRANSIENT = new Set(['40001', '40P01', '55P03', '57014', ...FORGOTTEN])
const REFUSED: Readonly<Record<string, string>> = {
  '28000': 'the server refused this user',
  '28P01': 'the server refused this user or password',
  '3D000': 'the database does not exist',
  '42501': 'this user lacks a right on the tables of the ledger',
}
const UNAVAILABLE: Readonly<Record<string, string>> = {
  '25006': 'the database is read-only (a standby, or default_transaction_read_only is on)',
  '25P03': 'the server closed the connection',
  '53100': 'the disk of the server is full',
  '53200': 'the server is out of memory',
  '53300': 'the server has no connection left',
  '57P01': 'the server closed the connection',
  '57P02': 'the server crashed',
  '57P03': 'the server is starting up or shutting down',
  '57P05': 'the server closed the connection',
  '58030': 'the disk of the server failed',
}

export function diagnose(error: unknown): Diagnosis {
  if (!(error instanceof Error)) return { kind: 'other' }
  const { code, constraint } = error as Error & { code?: string; constraint?: string }
  if (code === '23505') return { kind: 'duplicate', constraint: constraint?.endsWith('_pkey') ? 'primary' : (constraint ?? '') }
  if (code !== undefined && TRANSIENT.has(code)) return { kind: 'transient' }
  if (code === '42P01' || code === '42703' || code === '3F000') return { kind: 'no_table' }
  if (code !== undefined && code in REFUSED) return { kind: 'refused', problem: REFUSED[code]! }
  const problem = (code !== undefined ? UNAVAILABLE[code] : undefined) ?? (code?.startsWith('08') ? 'the connection failed' : networkProblem(error))
  return problem === undefined ? { kind: 'other' } : { kind: 'unavailable', problem }
}

function ddl(table: (name: string) => RawBuilder<unknown>): Ddl {
  return {
    key: (length) => sql`varchar(${sql.lit(length)}) collate "C"`,
    text: sql`text`,
    json: sql`json`,
    instant: sql`timestamptz(6)`,
    integer: sql`integer`,
    bigint: sql`bigint`,
    double: sql`double precision`,
    boolean: sql`boolean`,
    numberedKey: sql`bigint generated always as identity primary key`,
    tableOptions: sql``,
    async addColumn(db, on, column, definition) {
      await sql`alter table ${table(on)} add column if not exists ${sql.ref(column)} ${definition}`.execute(db)
    },
    async createIndex(db, { name, table: on, columns, unique, where }) {
      const kind = unique ? sql`unique index` : sql`index`
      await sql`create ${kind} if not exists ${sql.id(name)} on ${table(on)} (${sql.join(columns.map((c) => sql.ref(c)))}) ${where ? sql`where ${where}` : sql``}`.execute(db)
    },
    async createView(db, name, query) {
      await sql`create or replace view ${table(name)} as ${query}`.execute(db)
    },
  }
}

/** The pool of pg as Kysely wants it, which throws away what failed under us, knows several servers, and can be cut off. */
import { callbackify } from 'node:util'
import type { PostgresPool, PostgresPoolClient } from 'kysely'
import type { Client, ClientConfig, Pool, PoolClient, PoolConfig } from 'pg'
import { LedgerError } from '../model/errors.ts'
import type { ConnectOptions } from './connect-options.ts'
import { OneOf } from './one-of.ts'
import { connectionProblem } from './postgres-errors.ts'
import { preparing } from './postgres-prepared.ts'
import { deniedIn, missingRights } from './postgres-rights.ts'
import { tlsOptions } from './tls.ts'
import { eachAddress, type ServerAddress } from './url.ts'

const TIMESTAMPTZ = 1184
const INT8 = 20
const JSON_TEXT = 114

export interface Connections {
  readonly pool: PostgresPool
  /** A connection outside the pool, not open yet; each to the next of several servers. */
  newClient(): Client
  /** Closes the sockets of the pool whatever the servers say. */
  cut(): void
}

export async function openPool(address: ServerAddress, schema: string, options: ConnectOptions): Promise<Connections> {
  const { default: pg } = await import('pg')
  const addresses = eachAddress(address)
  // One that swallows every word must leave time for the others.
  const each = { ...options, connectTimeoutMs: Math.ceil(options.connectTimeoutMs / addresses.length) }
  const pools = addresses.map((one) => new pg.Pool({ ...poolConfig(one, each, pg.types), ...(addresses.length > 1 && { verify: refuseReadOnly }) }))
  const connections = new Set<PoolClient>()
  for (const pool of pools) {
    pool.on('connect', (client) => {
      connections.add(client)
      client.on('error', () => {}) // It may die before whoever asked for it has it; nobody else listens then, and that would end the process.
    })
    pool.on('remove', (client) => connections.delete(client))
    pool.on('error', () => {}) // An idle connection died; the pool has dropped it and the next query gets a new one.
  }
  let turn = 0
  return {
    pool: discarding(pools, schema),
    newClient: () => new pg.Client(clientConfig(addresses[turn++ % addresses.length]!, each)),
    cut: () => connections.forEach((client) => client.connection.stream.destroy()),
  }
}

/** A standby takes connections too, and would refuse the first write on each. */
const refuseReadOnly = callbackify(async (client: PoolClient): Promise<void> => {
  const { rows } = await client.query<{ transaction_read_only: string }>('show transaction_read_only')
  if (rows[0]?.transaction_read_only === 'on') throw Object.assign(new Error('this server is read-only'), { code: '25006' })
})

function clientConfig(address: ServerAddress, options: ConnectOptions): ClientConfig {
  return {
    host: address.host,
    port: address.port,
    ...(address.user !== undefined && { user: address.user }),
    ...(address.password !== undefined && { password: address.password }),
    ...(address.database !== undefined && { database: address.database }),
    ssl: tlsOptions(address.tls, address.host),
    connectionTimeoutMillis: options.connectTimeoutMs,
    query_timeout: options.statementTimeoutMs,
    keepAlive: true,
    application_name: 'runledger',
  }
}

function poolConfig(address: ServerAddress, options: ConnectOptions, types: typeof import('pg').types): PoolConfig {
  return {
    ...clientConfig(address, options),
    max: options.poolMax,
    idleTimeoutMillis: 30_000,
    types: { getTypeParser: (oid: number, format?: 'text' | 'binary') => parserOf(types, oid, format) },
  }
}

// int8 comes as text from the driver unless told otherwise; a fence above 2^53 must not be rounded.
function parserOf(types: typeof import('pg').types, oid: number, format?: 'text' | 'binary'): (text: string) => unknown {
  if (oid === INT8) return BigInt
  if (oid === TIMESTAMPTZ) return readTimestamp
  if (oid === JSON_TEXT) return (text) => text // Parsed by the driver, JSON's null could not be told from no value.
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
function discarding(pools: readonly Pool[], schema: string): PostgresPool {
  const send = preparing()
  const servers = new OneOf(pools, connectionProblem)
  return {
    Client: undefined as never,
    options: {},
    end: async () => void (await Promise.all(pools.map((pool) => pool.end()))),
    async connect(): Promise<PostgresPoolClient> {
      const { client, pool } = await servers.reach(async (one) => ({ client: await one.connect(), pool: one }))
      let broken: unknown
      const onError = (error: Error) => void (broken ??= error) // A checked-out client that dies while idle would otherwise crash us.
      client.on('error', onError)
      return {
        processID: (client as unknown as { processID: number }).processID,
        query: (async (text: string, parameters: unknown[]) => {
          if (broken !== undefined) throw broken // A rollback would wait as long again.
          try {
            return await send(client, text, parameters)
          } catch (error) {
            if (error instanceof Error && connectionProblem(error) !== undefined) broken ??= error
            const denied = deniedIn(error)
            if (denied) Object.assign(error as Error, { missing: await missingRights((query, values) => pool.query(query, [...values]), denied, schema, text).catch(() => []) }) // What is denied is known without it.
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

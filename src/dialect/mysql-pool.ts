/** The pool of mysql2 as Kysely wants it, which throws away what failed under us, knows several servers, and can be cut off. */
import type { Socket } from 'node:net'
import { callbackify } from 'node:util'
import type { MysqlPool, MysqlPoolConnection } from 'kysely'
import type { Pool, PoolConnection, PoolOptions } from 'mysql2'
import type { ConnectOptions } from './connect-options.ts'
import { connectionProblem } from './mysql-errors.ts'
import { OneOf } from './one-of.ts'
import { tlsOptions } from './tls.ts'
import { eachAddress, type ServerAddress } from './url.ts'

/** @returns the pool, and how to close its sockets whatever the servers say */
export async function openPool(address: ServerAddress, options: ConnectOptions): Promise<{ pool: MysqlPool; cut(): void }> {
  const { createPool } = await import('mysql2')
  const addresses = eachAddress(address)
  // One that swallows every word must leave time for the others.
  const each = { ...options, connectTimeoutMs: Math.ceil(options.connectTimeoutMs / addresses.length) }
  const pools = addresses.map((one) => createPool(poolOptions(one, each)))
  const sockets = new Set<Socket>()
  for (const pool of pools) {
    pool.on('connection', (connection) => {
      // The driver itself never destroys one: it says that it is done, and the socket stays until the server has answered.
      const { stream } = connection as unknown as { stream: Socket }
      sockets.add(stream)
      stream.once('close', () => sockets.delete(stream))
    })
  }
  return { pool: discarding(pools, options.statementTimeoutMs), cut: () => sockets.forEach((socket) => socket.destroy()) }
}

function poolOptions(address: ServerAddress, options: ConnectOptions): PoolOptions {
  const tls = tlsOptions(address.tls, address.host)
  return {
    ...(address.host.startsWith('/') ? { socketPath: address.host } : { host: address.host, port: address.port }),
    ...(address.user !== undefined && { user: address.user }),
    ...(address.password !== undefined && { password: address.password }),
    ...(address.database !== undefined && { database: address.database }),
    ...(tls !== false && { ssl: tls }),
    charset: 'utf8mb4',
    timezone: 'Z',
    flags: ['FOUND_ROWS'], // Affected rows are matched rows, whatever the URL says.
    multipleStatements: true,
    supportBigNumbers: true,
    bigNumberStrings: true,
    jsonStrings: true,
    connectionLimit: options.poolMax,
    connectTimeout: options.connectTimeoutMs,
    enableKeepAlive: true,
    waitForConnections: true,
  }
}

/** The pool as Kysely wants it; a connection that failed under us is destroyed, not handed to the next query. */
function discarding(pools: readonly Pool[], timeoutMs: number): MysqlPool {
  const servers = new OneOf(pools, connectionProblem)
  const writable = new WeakSet<object>()
  const connect = async (pool: Pool) => {
    const connection = await connectionOf(pool)
    const wrapped = discardingConnection(connection, timeoutMs)
    if (pools.length > 1 && !writable.has(connection)) await requireWritable(wrapped)
    writable.add(connection)
    return wrapped
  }
  return {
    end: callbackify(async () => void (await Promise.all(pools.map(endOf)))),
    getConnection: callbackify(() => servers.reach(connect)),
  }
}

function connectionOf(pool: Pool): Promise<PoolConnection> {
  return new Promise((resolve, reject) => pool.getConnection((error, connection) => (error ? reject(error) : resolve(connection))))
}

function endOf(pool: Pool): Promise<void> {
  return new Promise((resolve, reject) => pool.end((error) => (error ? reject(error) : resolve())))
}

type Shown = readonly { readonly Value: string }[]
type Standing = readonly [readonly [{ readonly readOnly: number }], Shown, Shown]

/** A replica takes connections too, and would refuse the first write on each; so does a node of Galera outside its cluster. */
async function requireWritable(connection: MysqlPoolConnection): Promise<void> {
  try {
    const [[replica], cluster, ready] = await new Promise<Standing>((resolve, reject) => {
      connection.query(`select @@global.read_only as readOnly; show global variables like 'wsrep_on'; show global status like 'wsrep_ready'`, [], (error, result) => (error ? reject(error as Error) : resolve(result as unknown as Standing)))
    })
    if (Number(replica.readOnly) === 1) throw Object.assign(new Error('this server is read-only'), { errno: 1290 })
    // A MariaDB that stands alone is not ready for a cluster either.
    if (cluster[0]?.Value === 'ON' && ready[0]?.Value === 'OFF') throw Object.assign(new Error('this node is not part of its cluster'), { errno: 1047 })
  } catch (error) {
    connection.destroy()
    throw error
  }
}

function discardingConnection(connection: PoolConnection, timeoutMs: number): MysqlPoolConnection {
  let broken: Error | undefined
  const onError = (error: Error) => void (broken ??= error) // A checked-out connection that dies while idle would otherwise crash us.
  connection.on('error', onError)
  const destroy = () => connection.destroy()
  const query = (text: string, values: unknown[], callback: (error: unknown, result?: unknown) => void) => {
    if (broken) return callback(broken) // A rollback would wait as long again.
    const answer = (error: unknown, result?: unknown) => {
      clearTimeout(timer)
      if (error instanceof Error && connectionProblem(error) !== undefined) broken ??= error
      callback(error, result)
    }
    // The driver's own timeout outlives a lost connection, and keeps the process alive for as long.
    const timer = setTimeout(answer, timeoutMs, Object.assign(new Error('the statement was not answered'), { code: 'PROTOCOL_SEQUENCE_TIMEOUT' }))
    connection.query(text, values, answer)
  }
  return {
    config: connection.config,
    threadId: connection.threadId,
    connect: () => {},
    destroy,
    query: query as MysqlPoolConnection['query'],
    release() {
      connection.off('error', onError)
      if (broken) destroy()
      else connection.release()
    },
  }
}

/** The pool of mysql2 as Kysely wants it, which throws away what failed under us and can be cut off. */
import type { Socket } from 'node:net'
import type { MysqlPool, MysqlPoolConnection } from 'kysely'
import type { Pool, PoolConnection, PoolOptions } from 'mysql2'
import type { ConnectOptions } from './connect-options.ts'
import { connectionProblem } from './mysql-errors.ts'
import { tlsOptions } from './tls.ts'
import type { ServerAddress } from './url.ts'

/** @returns the pool, and how to close its sockets whatever the server says */
export async function openPool(address: ServerAddress, options: ConnectOptions): Promise<{ pool: MysqlPool; cut(): void }> {
  const { createPool } = await import('mysql2')
  const pool = createPool(poolOptions(address, options))
  const sockets = new Set<Socket>()
  pool.on('connection', (connection) => {
    // The driver itself never destroys one: it says that it is done, and the socket stays until the server has answered.
    const { stream } = connection as unknown as { stream: Socket }
    sockets.add(stream)
    stream.once('close', () => sockets.delete(stream))
  })
  return { pool: discarding(pool, options.statementTimeoutMs), cut: () => sockets.forEach((socket) => socket.destroy()) }
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
function discarding(pool: Pool, timeout: number): MysqlPool {
  return {
    end: (callback) => pool.end(callback),
    getConnection(callback) {
      pool.getConnection((error: NodeJS.ErrnoException | null, connection: PoolConnection) => {
        if (error) callback(error, undefined as never)
        else callback(null, discardingConnection(connection, timeout))
      })
    },
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

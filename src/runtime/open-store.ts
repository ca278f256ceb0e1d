/** Opens the ledger's database: for the verbs of a process, and apart from them for its heartbeats. */
import { connect } from '../dialect/connect.ts'
import type { ConnectOptions } from '../dialect/connect-options.ts'
import type { Store, Tables } from '../store/tables.ts'

export function openStore(url: string, options: Partial<ConnectOptions> = {}): Promise<Store> {
  return connect<Tables>(url, options)
}

/** One connection, quick to give up: a beat that hangs must leave time for the next one. */
export function openHeartStore(url: string): Promise<Store> {
  return connect<Tables>(url, { poolMax: 1, connectTimeoutMs: 3_000, statementTimeoutMs: 3_000 })
}

/** A worker's own: one connection to fetch, one to record, one for what else it has to say. */
export function openWorkerStore(url: string): Promise<Store> {
  return connect<Tables>(url, { poolMax: 3, connectTimeoutMs: 5_000, statementTimeoutMs: 15_000 })
}

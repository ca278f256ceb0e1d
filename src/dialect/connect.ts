/** Opens a database by its URL: the only switch over databases in the whole ledger. */
import type { ConnectOptions } from './connect-options.ts'
import type { Dialect } from './dialect.ts'
import { LedgerNames } from './ledger-names.ts'
import { parseDatabaseUrl } from './url.ts'

const DEFAULTS: ConnectOptions = { poolMax: 4, connectTimeoutMs: 10_000, statementTimeoutMs: 30_000 }

/**
 * Loads the one driver that is needed. Servers are not contacted before the first query.
 * @throws INVALID_OPTION for a URL that cannot be read; DATABASE_UNAVAILABLE for a SQLite file that cannot be opened
 */
export async function connect<Tables>(url: string, options: Partial<ConnectOptions> = {}): Promise<Dialect<Tables>> {
  const parsed = parseDatabaseUrl(url)
  const all = { ...DEFAULTS, ...options }
  if (parsed.kind === 'sqlite') return (await import('./sqlite.ts')).sqlite(parsed.path, new LedgerNames(parsed.tablePrefix), all)
  if (parsed.kind === 'postgres') return (await import('./postgres.ts')).postgres(parsed.address, new LedgerNames(parsed.address.tablePrefix), all)
  return (await import('./mysql.ts')).mysql(parsed.address, new LedgerNames(parsed.address.tablePrefix), all)
}

/** Makes sure that the schema is ours before anything is claimed; an embedded file brings itself up to date. */
import { isLedgerError } from '../model/errors.ts'
import { requireCurrentSchema, schemaState, type MigrationState } from '../migrate/schema-state.ts'
import type { Store } from '../store/tables.ts'
import { openStore } from './open-store.ts'
import { settle } from './settle.ts'

/** @throws SCHEMA_BEHIND, SCHEMA_AHEAD */
export async function readySchema(store: Store, url: string): Promise<void> {
  try {
    await requireCurrentSchema(store)
  } catch (error) {
    const migratesItself = url.startsWith('sqlite:') && isLedgerError(error) && error.code === 'SCHEMA_BEHIND'
    if (!migratesItself) throw error
    const { migrate } = await import('../migrate/migrate.ts')
    await migrate(store)
  }
}

/**
 * Brings the schema at `url` up to this version and returns the names of what was applied, none when it was current.
 * Any number may do it at once. @throws SCHEMA_AHEAD, DATABASE_UNAVAILABLE, INVALID_OPTION
 */
export async function migrate(url: string, patienceMs = 10_000): Promise<string[]> {
  const { migrate } = await import('../migrate/migrate.ts')
  return withStore(url, (store) => settle(store, patienceMs, () => migrate(store)))
}

/** What this version knows and what the database at `url` has; changes nothing. */
export async function migrationStatus(url: string, patienceMs = 10_000): Promise<MigrationState[]> {
  return withStore(url, (store) => settle(store, patienceMs, () => schemaState(store)))
}

async function withStore<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(url)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

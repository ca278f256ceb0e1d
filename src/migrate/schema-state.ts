/** Whether the schema in the database is the one this version works with: read only, one statement. */
import { sql } from 'kysely'
import { migrations } from '../../migrations/index.ts'
import type { Dialect } from '../dialect/dialect.ts'
import { LedgerError } from '../model/errors.ts'

export interface MigrationState {
  readonly name: string
  /** Null while it has not been applied. */
  readonly appliedAt: Date | null
  /** False for one that a newer version applied and this version does not know. */
  readonly known: boolean
}

/** Every migration that this version knows or that the database has, in order. */
export async function schemaState<T>(dialect: Dialect<T>): Promise<MigrationState[]> {
  const applied = await appliedMigrations(dialect)
  const known = migrations.map(({ name }) => ({ name, appliedAt: applied.get(name) ?? null, known: true }))
  const unknown = [...applied].filter(([name]) => !migrations.some((migration) => migration.name === name))
  return [...known, ...unknown.map(([name, appliedAt]) => ({ name, appliedAt, known: false }))]
}

/** @throws SCHEMA_BEHIND, SCHEMA_AHEAD */
export async function requireCurrentSchema<T>(dialect: Dialect<T>): Promise<void> {
  const state = await schemaState(dialect)
  const unknown = state.filter(({ known }) => !known).map(({ name }) => name)
  if (unknown.length > 0) {
    throw new LedgerError('SCHEMA_AHEAD', `${dialect.place} has migrations that this version does not know (${unknown.join(', ')}); install the newer runledger on this host too`, { place: dialect.place, unknown: unknown.join(',') })
  }
  const missing = state.filter(({ appliedAt }) => appliedAt === null).map(({ name }) => name)
  if (missing.length > 0) {
    throw new LedgerError('SCHEMA_BEHIND', `${dialect.place} lacks ${missing.join(', ')}; run 'runledger migrate' once`, { place: dialect.place, missing: missing.join(',') })
  }
}

async function appliedMigrations<T>(dialect: Dialect<T>): Promise<Map<string, Date>> {
  try {
    const { rows } = await sql<{ name: string; applied_at: unknown }>`select name, applied_at from ${dialect.table('runledger_migrations')} order by name`.execute(dialect.db)
    return new Map(rows.map(({ name, applied_at }) => [name, dialect.readInstant(applied_at) ?? new Date(0)]))
  } catch (error) {
    if (dialect.diagnose(error).kind === 'no_table') return new Map()
    throw error
  }
}

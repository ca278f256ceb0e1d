/** Takes a throwaway ledger out of a database that others use too: its tables and views, and nothing else. */
import { sql, type Kysely } from 'kysely'
import type { Dialect } from './dialect.ts'
import { LEDGER_TABLES } from './ledger-names.ts'

const VIEWS = new Set(['task_run_history', 'task_conflicts', 'task_status', 'stale_task_runs', 'task_effects_in_doubt'])

export async function dropLedger<Tables>({ db, table }: { readonly db: Kysely<Tables>; readonly table: Dialect['table'] }): Promise<void> {
  for (const name of LEDGER_TABLES.filter((name) => VIEWS.has(name))) await sql`drop view if exists ${table(name)}`.execute(db)
  for (const name of [...LEDGER_TABLES.filter((name) => !VIEWS.has(name)), 'runledger_lock']) await sql`drop table if exists ${table(name)}`.execute(db)
}

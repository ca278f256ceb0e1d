/** What of a PostgreSQL server and of the way to it matters to a ledger. */
import { sql, type Kysely, type PostgresPool } from 'kysely'
import { ok, problem, type Checkup } from '../model/checkup.ts'
import type { LedgerNames } from './ledger-names.ts'

export async function examinePostgres(db: Kysely<unknown>, pool: PostgresPool, names: LedgerNames, schema: string): Promise<Checkup[]> {
  const { rows } = await sql<{ version: string; isolation: string; style: string; zone: string }>`
    select current_setting('server_version') as version, current_setting('default_transaction_isolation') as isolation,
      current_setting('DateStyle') as style, current_setting('TimeZone') as zone`.execute(db)
  const { version, isolation, style, zone } = rows[0]!
  return [ok('version', `PostgreSQL ${version}, schema ${schema}${names.prefix === '' ? '' : `, tables ${names.prefix}…`}`), isolationOf(isolation), datesOf(style, zone), await collations(db, names, schema), await wayTo(pool)]
}

function isolationOf(isolation: string): Checkup {
  return ok('isolation', isolation === 'read committed' ? 'read committed' : `${isolation} is the default here; the ledger asks for read committed in its transactions, and tries again what a single statement is refused`)
}

function datesOf(style: string, zone: string): Checkup {
  if (!style.startsWith('ISO')) return problem('dates', `DateStyle is ${style}: instants cannot be read`, 'alter role … set datestyle to iso')
  return ok('dates', `DateStyle ${style}, session zone ${zone}: instants are stored and read in UTC whatever it is`)
}

async function collations(db: Kysely<unknown>, names: LedgerNames, schema: string): Promise<Checkup> {
  const { rows } = await sql<{ name: string; collation: string | null }>`
    select table_name || '.' || column_name as name, collation_name as collation from information_schema.columns
    where table_schema = ${schema} and table_name in (${sql.join(['task_runs', 'task_attempts', 'task_fences', 'task_effects', 'tasks'].map((table) => names.full(table)))})
      and column_name in ('task_key', 'task_name', 'active_key', 'concurrency_key', 'scope', 'effect_key')`.execute(db)
  const wrong = rows.filter(({ collation }) => collation !== 'C')
  if (wrong.length === 0) return ok('collations', rows.length === 0 ? 'there are no keys yet' : 'keys are compared byte for byte')
  return problem('collations', `${wrong.map(({ name }) => name).join(', ')} not compared byte for byte`, `alter table … alter column … type varchar(200) collate "C"`)
}

/** The driver was given the pid of whoever it talks to; the server knows its own. */
async function wayTo(pool: PostgresPool): Promise<Checkup> {
  const client = await pool.connect()
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid', [])
    if (client.processID === rows[0]!.pid) return ok('pooler', 'the connection goes to the server itself')
    return ok('pooler', 'a pooler (such as PgBouncer) stands in between; nothing of the ledger relies on a session')
  } finally {
    client.release()
  }
}


/** What of a MySQL or MariaDB server and of the way to it matters to a ledger. */
import { sql, type Kysely, type MysqlPool } from 'kysely'
import { ok, problem, type Checkup } from '../model/checkup.ts'
import type { LedgerNames } from './ledger-names.ts'

export async function examineMysql(db: Kysely<unknown>, pool: MysqlPool, names: LedgerNames, product: string, collation: string): Promise<Checkup[]> {
  const { rows } = await sql<{ zone: string; system_zone: string }>`select @@session.time_zone as zone, @@system_time_zone as system_zone`.execute(db)
  const { zone, system_zone } = rows[0]!
  return [
    ok('version', `${product}${names.prefix === '' ? '' : `, tables ${names.prefix}…`}`),
    ok('isolation', 'the ledger asks for read committed in its transactions, whatever the default'),
    ok('dates', `session zone ${zone === 'SYSTEM' ? system_zone : zone}: instants are stored and read in UTC whatever it is`),
    await collations(db, names, collation),
    await wayTo(pool),
  ]
}

async function collations(db: Kysely<unknown>, names: LedgerNames, collation: string): Promise<Checkup> {
  const { rows } = await sql<{ name: string; collation: string | null }>`
    select concat(table_name, '.', column_name) as name, collation_name as collation from information_schema.columns
    where table_schema = database() and table_name in (${sql.join(['task_runs', 'task_attempts', 'task_fences', 'task_effects', 'tasks'].map((table) => names.full(table)))})
      and column_name in ('task_key', 'task_name', 'active_key', 'concurrency_key', 'scope', 'effect_key')`.execute(db)
  const wrong = rows.filter(({ collation: found }) => found !== collation)
  if (wrong.length === 0) return ok('collations', rows.length === 0 ? 'there are no keys yet' : 'keys are compared byte for byte')
  return problem('collations', `${wrong.map(({ name }) => name).join(', ')} not compared byte for byte`, `alter table … modify … collate ${collation}`)
}

/** The driver was told the number of its connection; the server knows its own. */
async function wayTo(pool: MysqlPool): Promise<Checkup> {
  const { promise, resolve, reject } = Promise.withResolvers<Checkup>()
  pool.getConnection((refused, connection) => {
    if (refused) return reject(refused as Error)
    connection.query('select connection_id() as id', [], (error: unknown, rows: unknown) => {
      connection.release()
      if (error) return reject(error as Error)
      const isDirect = Number((rows as { id: number | string }[])[0]!.id) === connection.threadId
      resolve(ok('pooler', isDirect ? 'the connection goes to the server itself' : 'a proxy stands in between; nothing of the ledger relies on a session'))
    })
  })
  return promise
}

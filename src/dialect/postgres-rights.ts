/** Rights on PostgreSQL: how they are given, and which one is missing. */
import type { LedgerNames } from './ledger-names.ts'
import { lacking, LACKING_SOME, type Rights } from './rights.ts'

export function postgresGrants(user: string, { tables, schema: mayChange }: Rights, names: LedgerNames, schema: string): string[] {
  const [who, where] = [quoted(user), quoted(schema)]
  if (mayChange) {
    return [
      `create schema if not exists ${where};`,
      `grant usage, create on schema ${where} to ${who};`,
      '-- A table is changed by its owner: one that somebody else has made, each view too, is handed over by',
      `--   alter table ${where}.${quoted(names.full('task_runs'))} owner to ${who};`,
    ]
  }
  return [`grant usage on schema ${where} to ${who};`, ...Object.entries(tables).map(([table, rights]) => `grant ${rights.join(', ')} on ${where}.${quoted(names.full(table))} to ${who};`)]
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

const DENIED = /permission denied for (table|view|relation|schema|database) (.+)$/

/** What the server says is denied; undefined when it is about something else. */
interface Denied {
  readonly kind: string
  readonly name: string
}

export function deniedIn(error: unknown): Denied | undefined {
  const { code, message } = error as { code?: string; message?: string }
  const [, kind, name] = (code === '42501' && DENIED.exec(message ?? '')) || []
  return kind === undefined ? undefined : { kind, name: name! }
}

/**
 * Which rights on it this user does not have: the server names the table and not the right, so it is asked, on another
 * connection, since the transaction that failed answers nothing any more.
 */
export async function missingRights(ask: (text: string, values: readonly unknown[]) => Promise<{ rows: { missing: string | null }[] }>, { kind, name }: Denied, schema: string, statement: string): Promise<string[]> {
  const isTable = kind === 'table' || kind === 'view' || kind === 'relation'
  const [has, subject, rights] = isTable ? ['has_table_privilege', 'format(\'%I.%I\', $1::text, $2::text)', ['SELECT', 'INSERT', 'UPDATE', 'DELETE']] : [`has_${kind}_privilege`, 'coalesce(nullif($2::text, \'\'), $1::text)', kind === 'schema' ? ['USAGE', 'CREATE'] : ['CREATE']]
  const { rows } = await ask(`select string_agg(r, ',') as missing from unnest($3::text[]) r where not ${has as string}(${subject as string}, r)`, [schema, name, rights])
  const missing = rows[0]?.missing?.split(',') ?? []
  const wanted = missing.filter((right) => isTable && asksFor(right, name, statement))
  return wanted.length > 0 ? wanted : missing
}

function asksFor(right: string, table: string, statement: string): boolean {
  const verb = { INSERT: 'insert into', UPDATE: 'update', DELETE: 'delete from' }[right]
  const isLock = right === 'UPDATE' && /for update|on conflict .* do update/is.test(statement)
  return isLock || (verb !== undefined && new RegExp(`${verb}\\s+\\S*"${table.replace(/\W/g, '.')}"`, 'i').test(statement))
}

/** @param error 42501, with the missing rights where they were found */
export function refusal(error: Error & { missing?: readonly string[] }, names: LedgerNames): string {
  const denied = deniedIn(error)
  if (denied) return lacking(error.missing?.join(' or ') || 'needed', denied.kind === 'table' || denied.kind === 'view' ? names.plain(denied.name) : `${denied.kind} ${denied.name}`)
  const owner = /must be owner of (.+)$/.exec(error.message)?.[1]
  return owner === undefined ? LACKING_SOME : `this user must own ${owner} to change it`
}

/** Rights on MySQL and MariaDB: how they are given, and which one is missing. */
import type { LedgerNames } from './ledger-names.ts'
import { lacking, LACKING_SOME, type Rights } from './rights.ts'

/** @param user a name, or name@host; any host otherwise */
export function mysqlGrants(user: string, { tables, schema: mayChange }: Rights, names: LedgerNames, database: string): string[] {
  const [name = '', host = '%'] = user.split('@')
  const [who, where] = [`${quoted(name, "'")}@${quoted(host, "'")}`, quoted(database, '`')]
  // Tables that do not exist yet cannot be named by a prefix: it is the whole database.
  if (mayChange) return [`grant select, insert, update, delete, create, alter, drop, index, references, create view on ${where}.* to ${who};`]
  return Object.entries(tables).map(([table, rights]) => `grant ${rights.join(', ')} on ${where}.${quoted(names.full(table), '`')} to ${who};`)
}

function quoted(name: string, mark: string): string {
  return `${mark}${name.replaceAll(mark, mark + mark)}${mark}`
}

/** «INSERT command denied to user 'ann'@'db' for table 'task_runs'» (MySQL) or «… for table `app`.`task_runs`» (MariaDB). */
export function refusal(message: string, names: LedgerNames): string {
  const [, right, table] = /^(.+?) command denied to user .* for table ['`](?:[^'`]*`\.`)?([^'`]+)['`]/.exec(message) ?? []
  if (right === undefined || table === undefined) return LACKING_SOME
  return lacking(/lock/i.test(right) ? 'UPDATE' : right.replaceAll(', ', ' or '), names.plain(table))
}

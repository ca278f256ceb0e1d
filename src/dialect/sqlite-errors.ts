/** What the result codes of SQLite, and of the file system under it, mean for us. */
import type { Diagnosis } from './dialect.ts'
import type { LedgerNames } from './ledger-names.ts'

const [BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB] = [5, 6, 8, 10, 11, 13, 14, 26]
const CONSTRAINT_PRIMARYKEY = 1555
const CONSTRAINT_UNIQUE = 2067

const BROKEN: ReadonlyMap<number | undefined, string> = new Map([
  [READONLY, 'it is read-only'],
  [IOERR, 'the disk failed'],
  [CORRUPT, 'it is damaged'],
  [CANTOPEN, 'it cannot be opened'],
  [NOTADB, 'it is not a SQLite database'],
])
const FILE_PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'a part of its path is not a folder',
  EEXIST: 'a part of its path is not a folder',
  ELOOP: 'its path goes in a circle',
  ENAMETOOLONG: 'its path is too long',
  EISDIR: 'it is a folder',
  ENOENT: 'its folder does not exist',
}

export function diagnose(error: unknown, names: LedgerNames): Diagnosis {
  if (!(error instanceof Error)) return { kind: 'other' }
  const { errcode, code, message } = error as Error & { errcode?: number; code?: string }
  if (errcode === CONSTRAINT_PRIMARYKEY || errcode === CONSTRAINT_UNIQUE) return { kind: 'duplicate', constraint: violated(message, errcode, names) }
  const primary = errcode === undefined ? undefined : errcode & 0xff
  if (primary === BUSY || primary === LOCKED) return { kind: 'transient' }
  if (primary === FULL || code === 'ENOSPC') return { kind: 'unavailable', problem: 'the disk is full' }
  const problem = BROKEN.get(primary) ?? (code !== undefined ? FILE_PROBLEMS[code] : undefined)
  // A file answers at once: waiting makes none of these better.
  if (problem !== undefined) return { kind: 'refused', problem }
  return { kind: /^no such (table|column)/.test(message) ? 'no_table' : 'other' }
}

/** Differs by necessity: SQLite names table and columns («UNIQUE constraint failed: task_runs.task_key»), not the index; our indexes are named table_column. */
function violated(message: string, errcode: number, names: LedgerNames): string {
  const columns = /failed: (.+)$/.exec(message)?.[1] ?? ''
  const isOurKey = errcode === CONSTRAINT_PRIMARYKEY && names.owns(columns.split('.')[0]!)
  return isOurKey ? 'primary' : names.plain(columns.replaceAll('.', '_'))
}

/** What the error numbers of MySQL and MariaDB, and the network under them, mean for us. */
import type { Diagnosis } from './dialect.ts'
import type { LedgerNames } from './ledger-names.ts'
import { refusal } from './mysql-rights.ts'
import { networkProblem } from './network-problem.ts'

const TRANSIENT = new Set([1213, 1205, 1020, 1317, 1969, 3024, 3572])
const REFUSED: ReadonlyMap<number, string> = new Map([
  [1044, 'the server refused this user'],
  [1045, 'the server refused this user or password'],
  [1049, 'the database does not exist'],
  [1698, 'the server refused this user'],
])
const UNAVAILABLE: ReadonlyMap<number, string> = new Map([
  [1021, 'the disk of the server is full'],
  [1026, 'the disk of the server failed'],
  [1037, 'the server is out of memory'],
  [1040, 'the server has no connection left'],
  [1041, 'the server is out of memory'],
  [1047, 'this node is not part of its cluster'],
  [1053, 'the server is shutting down'],
  [1114, 'the disk of the server is full'],
  [1129, 'the server blocked this host'],
  [1180, 'the server could not commit'],
  [1203, 'the server has no connection left for this user'],
  [1226, 'the server has no connection left for this user'],
  [1290, 'the database is read-only'],
  [1792, 'the database is read-only'],
  [1836, 'the database is read-only'],
  [1927, 'the server closed the connection'],
  [3169, 'the server closed the connection'],
  [3989, 'the database is read-only'],
  [4031, 'the server closed the connection'],
])
/** On a table, on one of its columns. */
const LACKS_RIGHT = new Set([1142, 1143])
const DUPLICATE = new Set([1062, 1586])
const NO_TABLE = new Set([1146, 1054])

export function diagnose(error: unknown, names: LedgerNames): Diagnosis {
  if (!(error instanceof Error)) return { kind: 'other' }
  const { errno, message } = error as Error & { errno?: number }
  if (errno !== undefined && DUPLICATE.has(errno)) return { kind: 'duplicate', constraint: violated(message, names) }
  if (errno !== undefined && TRANSIENT.has(errno)) return { kind: 'transient' }
  if (errno !== undefined && NO_TABLE.has(errno)) return { kind: 'no_table' }
  if (errno !== undefined && LACKS_RIGHT.has(errno)) return { kind: 'refused', problem: refusal(message, names) }
  const refused = REFUSED.get(errno ?? 0)
  if (refused !== undefined) return { kind: 'refused', problem: refused }
  const problem = connectionProblem(error)
  return problem === undefined ? { kind: 'other' } : { kind: 'unavailable', problem }
}

/** Why a connection is of no use any more, or undefined when the error is about something else. */
export function connectionProblem(error: Error): string | undefined {
  return UNAVAILABLE.get((error as { errno?: number }).errno ?? 0) ?? networkProblem(error)
}

/**
 * «Duplicate entry '…' for key 'task_runs.PRIMARY'» (MySQL) or «… for key 'PRIMARY'» (MariaDB): the last quoted word.
 * Differs by necessity: MariaDB does not name the table, so the primary key of a foreign one (in a trigger) counts as ours.
 */
function violated(message: string, names: LedgerNames): string {
  const [table, name] = /for key '(?:([^'.]*)\.)?([^']*)'$/.exec(message)?.slice(1) ?? []
  if (name !== 'PRIMARY') return names.plain(name ?? '')
  return table === undefined || names.owns(table) ? 'primary' : `${table}.primary`
}

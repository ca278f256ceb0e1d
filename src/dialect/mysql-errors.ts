/** What the error numbers of MySQL and MariaDB, and the network under them, mean for us. */
import type { Diagnosis } from './dialect.ts'
import { networkProblem } from './network-problem.ts'

const TRANSIENT = new Set([1213, 1205, 1020, 1317, 1969, 3024, 3572])
const REFUSED: ReadonlyMap<number, string> = new Map([
  [1044, 'the server refused this user'],
  [1045, 'the server refused this user or password'],
  [1049, 'the database does not exist'],
  [1142, 'this user lacks a right on the tables of the ledger'],
  [1143, 'this user lacks a right on the tables of the ledger'],
  [1698, 'the server refused this user'],
])
const UNAVAILABLE: ReadonlyMap<number, string> = new Map([
  [1040, 'the server has no connection left'],
  [1047, 'this node is not part of its cluster'],
  [1053, 'the server is shutting down'],
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
const DUPLICATE = new Set([1062, 1586])
const NO_TABLE = new Set([1146, 1054])

export function diagnose(error: unknown): Diagnosis {
  if (!(error instanceof Error)) return { kind: 'other' }
  const { errno, message } = error as Error & { errno?: number }
  if (errno !== undefined && DUPLICATE.has(errno)) return { kind: 'duplicate', constraint: violated(message) }
  if (errno !== undefined && TRANSIENT.has(errno)) return { kind: 'transient' }
  if (errno !== undefined && NO_TABLE.has(errno)) return { kind: 'no_table' }
  const refusal = REFUSED.get(errno ?? 0)
  if (refusal !== undefined) return { kind: 'refused', problem: refusal }
  const problem = UNAVAILABLE.get(errno ?? 0) ?? networkProblem(error)
  return problem === undefined ? { kind: 'other' } : { kind: 'unavailable', problem }
}

// «Duplicate entry '…' for key 'task_runs.PRIMARY'» (MySQL) or «… for key 'PRIMARY'» (MariaDB): the last quoted word.
function violated(message: string): string {
  const name = /for key '([^']*)'$/.exec(message)?.[1]?.split('.').at(-1) ?? ''
  return name === 'PRIMARY' ? 'primary' : name
}

/** What the SQLSTATEs of PostgreSQL, and the network under it, mean for us. */
import type { Diagnosis } from './dialect.ts'
import type { LedgerNames } from './ledger-names.ts'
import { networkProblem } from './network-problem.ts'
import { FORGOTTEN } from './postgres-prepared.ts'
import { refusal } from './postgres-rights.ts'

const TRANSIENT = new Set(['40001', '40P01', '55P03', '57014', ...FORGOTTEN])
const REFUSED: Readonly<Record<string, string>> = {
  '28000': 'the server refused this user',
  '28P01': 'the server refused this user or password',
  '3D000': 'the database does not exist',
}
/** PgBouncer gives its own words, and what a server answered when it signed in for us, one code for everything. */
const POOLER = '08P01'
const REFUSED_BY_POOLER: readonly [RegExp, string][] = [
  [/authentication failed|no such user|auth failed/i, REFUSED['28P01']!],
  [/no such database|database .* does not exist/i, REFUSED['3D000']!],
]
const UNAVAILABLE: Readonly<Record<string, string>> = {
  '25006': 'the database is read-only (a standby, or default_transaction_read_only is on)',
  '25P03': 'the server closed the connection',
  '53100': 'the disk of the server is full',
  '53200': 'the server is out of memory',
  '53300': 'the server has no connection left',
  '57P01': 'the server closed the connection',
  '57P02': 'the server crashed',
  '57P03': 'the server is starting up or shutting down',
  '57P05': 'the server closed the connection',
  '58030': 'the disk of the server failed',
}

export function diagnose(error: unknown, names: LedgerNames, schema: string): Diagnosis {
  if (!(error instanceof Error)) return { kind: 'other' }
  const { code } = error as { code?: string }
  if (code === '23505') return { kind: 'duplicate', constraint: violated(error, names, schema) }
  if (code !== undefined && TRANSIENT.has(code)) return { kind: 'transient' }
  if (code === '42P01' || code === '42703' || code === '3F000') return { kind: 'no_table' }
  if (code === '42501') return { kind: 'refused', problem: refusal(error, names) }
  const refused = refusedBy(error)
  if (refused !== undefined) return { kind: 'refused', problem: refused }
  const problem = connectionProblem(error)
  return problem === undefined ? { kind: 'other' } : { kind: 'unavailable', problem }
}

/** Why a connection is of no use any more, or undefined when the error is about something else. */
export function connectionProblem(error: Error): string | undefined {
  const { code } = error as { code?: string }
  if (refusedBy(error) !== undefined) return undefined
  return (code !== undefined ? UNAVAILABLE[code] : undefined) ?? (code?.startsWith('08') ? 'the connection failed' : networkProblem(error))
}

function refusedBy(error: Error & { code?: string }): string | undefined {
  return error.code === POOLER ? REFUSED_BY_POOLER.find(([pattern]) => pattern.test(error.message))?.[1] : REFUSED[error.code ?? '']
}

function violated(error: Error & { schema?: string; table?: string; constraint?: string }, names: LedgerNames, schema: string): string {
  const { table = '', constraint = '' } = error
  if (error.schema !== schema) return `${error.schema}.${constraint}`
  return constraint === `${table}_pkey` && names.owns(table) ? 'primary' : names.plain(constraint)
}

/** Exit codes, and how an error becomes one line and a code. The numbers are those of sysexits.h where it has one. */
import { inspect } from 'node:util'
import { isLedgerError, type ErrorCode } from '../index.ts'

export const EXIT = {
  ok: 0,
  notFound: 1,
  /** A check that found something. */
  found: 1,
  /** A self-test found a promise that was not kept. */
  broken: 1,
  usage: 64,
  notRecordable: 65,
  unavailable: 69,
  bug: 70,
  /** Somebody else has it, or had it: a launch that lost, or an effect that is being performed. */
  conflict: 73,
  /** An operator cancelled the run. */
  cancelled: 72,
  cannotWrite: 74,
  leaseLost: 75,
  inDoubt: 76,
  staleFence: 77,
  schema: 78,
  timeout: 124,
  interrupted: 130,
} as const

const CODES: Readonly<Record<ErrorCode, number>> = {
  INVALID_OPTION: EXIT.usage,
  DATABASE_UNAVAILABLE: EXIT.unavailable,
  SCHEMA_BEHIND: EXIT.schema,
  SCHEMA_AHEAD: EXIT.schema,
  LEASE_LOST: EXIT.leaseLost,
  RUN_CANCELLED: EXIT.cancelled,
  EFFECT_IN_DOUBT: EXIT.inDoubt,
  EFFECT_HELD: EXIT.conflict,
  EFFECT_NOT_FOUND: EXIT.notFound,
  RESULT_NOT_RECORDABLE: EXIT.notRecordable,
  STALE_FENCE: EXIT.staleFence,
  RUN_NOT_FOUND: EXIT.notFound,
  INTERNAL: EXIT.bug,
}

export function exitCodeOf(error: unknown): number {
  return isLedgerError(error) ? CODES[error.code] : EXIT.bug
}

/** One line for stderr. What is not ours to expect is called a bug, with the place it came from when asked for. */
export function lineOf(error: unknown, env: NodeJS.ProcessEnv): string {
  const message = error instanceof Error ? error.message : inspect(error)
  const line = `runledger: ${isLedgerError(error) ? '' : 'bug: '}${message.replace(/\s*\n\s*/g, ' ')}`
  const details = env['RUNLEDGER_DEBUG'] && error instanceof Error ? `\n${error.stack}` : ''
  return `${line}${details}\n`
}

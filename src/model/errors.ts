/**
 * The catalogue of broken promises. Expected contention is a value, never one of these.
 *
 * Every error carries a stable `code`, the facts as fields and, where there is one, the `cause`.
 * The message starts with the code, so that one line in a log is enough to search for.
 */

/** Codes a caller may switch on; each is described in docs/errors.md. */
export const ERROR_CODES = [
  'INVALID_OPTION',
  'DATABASE_UNAVAILABLE',
  'SCHEMA_BEHIND',
  'SCHEMA_AHEAD',
  'LEASE_LOST',
  'RUN_CANCELLED',
  'EFFECT_IN_DOUBT',
  'EFFECT_HELD',
  'EFFECT_NOT_FOUND',
  'RESULT_NOT_RECORDABLE',
  'STALE_FENCE',
  'RUN_NOT_FOUND',
  'INTERNAL',
] as const

export type ErrorCode = (typeof ERROR_CODES)[number]

/** Facts of an error: plain values that a log can print. Never a password, never a whole URL. */
export type ErrorFacts = Readonly<Record<string, string | number | bigint | boolean | null | undefined>>

export class LedgerError extends Error {
  override readonly name = 'LedgerError'
  readonly code: ErrorCode
  readonly facts: ErrorFacts

  /** @param message what happened, without the code; it is prefixed here. */
  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}, cause?: unknown) {
    super(`${code}: ${message}`, cause === undefined ? undefined : { cause })
    this.code = code
    this.facts = facts
  }
}

/** True for a LedgerError of this or of another copy of the package (no instanceof across copies). */
export function isLedgerError(error: unknown): error is LedgerError {
  return error instanceof Error && error.name === 'LedgerError' && 'code' in error && 'facts' in error
}

/** Refuses an option at the door: names the option and says what would be right. */
export function invalidOption(option: string, problem: string, cause?: unknown): LedgerError {
  return new LedgerError('INVALID_OPTION', `${option}: ${problem}`, { option }, cause)
}

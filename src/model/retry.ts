/** Attempts and the pause between them. */
import { durationMs, type Duration } from './duration.ts'
import { invalidOption } from './errors.ts'

/** How many attempts a run may have when the caller does not say: a crash of its host is survived twice. */
export const DEFAULT_MAX_ATTEMPTS = 3

const MAX_ATTEMPTS = 1000
const DEFAULT_BACKOFF_MS = 10_000
const MAX_BACKOFF_MS = 3_600_000

/** What happens after an attempt that failed (an attempt whose owner died is always repeated while attempts are left). */
export interface RetryTerms {
  readonly maxAttempts: number
  /** True when the caller asked for attempts: then a failed one is repeated too, not only a lost one. */
  readonly afterFailure: boolean
  readonly backoffMs: number
}

/**
 * Without `maxAttempts` a run may be taken up again after a crash (three attempts in all), but a job that *fails* has
 * spoken, and its word is final. A manual run is not repeated at all unless asked for: nobody but the person who
 * started it knows whether the next launch of the task would do the same. @throws INVALID_OPTION
 */
export function retryTerms(maxAttempts: number | undefined, backoff: Duration = DEFAULT_BACKOFF_MS, isManual = false): RetryTerms {
  const backoffMs = durationMs('backoff', backoff, { zero: true })
  if (maxAttempts === undefined) return { maxAttempts: isManual ? 1 : DEFAULT_MAX_ATTEMPTS, afterFailure: false, backoffMs }
  if (!Number.isInteger(maxAttempts) || maxAttempts < 1 || maxAttempts > MAX_ATTEMPTS) {
    throw invalidOption('max-attempts', `must be a whole number from 1 to ${MAX_ATTEMPTS}, got ${String(maxAttempts)}`)
  }
  return { maxAttempts, afterFailure: true, backoffMs }
}

/**
 * Milliseconds until the next attempt: the backoff doubled for each attempt behind us, at most an hour (or the backoff
 * itself, if that is longer), spread by up to a tenth so that many runs that failed together do not return together.
 * @param random a number in [0, 1)
 */
export function backoffMs(terms: RetryTerms, attempt: number, random: number): number {
  const ceiling = Math.max(terms.backoffMs, MAX_BACKOFF_MS)
  const doubled = Math.min(terms.backoffMs * 2 ** Math.min(attempt - 1, 30), ceiling)
  return Math.round(doubled * (1 + random / 10))
}

/** Turns a driver's error into DATABASE_UNAVAILABLE where that is what it means, with the place and without a secret. */
import { LedgerError } from '../model/errors.ts'
import type { Dialect } from './dialect.ts'

/** The error to throw: DATABASE_UNAVAILABLE with the driver's error as its cause, or the error itself when it is about something else. */
export function unreachable(diagnose: Dialect['diagnose'], place: string, error: unknown): unknown {
  const diagnosis = diagnose(error)
  if (diagnosis.kind === 'transient') return new LedgerError('DATABASE_UNAVAILABLE', `${place}: it stayed locked`, { place, retryable: true }, error)
  if (diagnosis.kind !== 'unavailable' && diagnosis.kind !== 'refused') return error
  return new LedgerError('DATABASE_UNAVAILABLE', `${place}: ${diagnosis.problem}`, { place, retryable: diagnosis.kind === 'unavailable' }, error)
}

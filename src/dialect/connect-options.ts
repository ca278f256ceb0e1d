/** How to connect: the same for every database. */
import type { Logger } from 'kysely'
import type { ClockOffset } from './dialect.ts'

export interface ConnectOptions {
  readonly poolMax: number
  /** How long one attempt to connect may take. */
  readonly connectTimeoutMs: number
  /** How long one statement may take before its connection counts as dead. Locks are short here, so this is generous. */
  readonly statementTimeoutMs: number
  /** Tests move the clock with it. */
  readonly clock?: ClockOffset | undefined
  /** Hears every statement; for diagnosis and for tests that stop a process between two statements. */
  readonly log?: Logger | undefined
}

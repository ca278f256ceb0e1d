/** What a claim is made of. */
import type { LeaseTerms } from '../model/lease.ts'
import type { RetryTerms } from '../model/retry.ts'
import type { Instance } from '../model/run.ts'
import type { Claimed } from '../store/claim.ts'
import type { Store } from '../store/tables.ts'
import type { Observer } from './observer.ts'
import type { Pacemaker } from './pacemaker.ts'

export interface ClaimParts {
  readonly store: Store
  readonly observer: Observer
  readonly pacemaker: Pick<Pacemaker, 'start'>
  readonly claimed: Omit<Claimed, 'status'>
  readonly instance: Pick<Instance, 'host' | 'pid'>
  readonly task: string
  readonly window: { readonly start: Date; readonly end: Date; readonly zone: string } | null
  readonly lease: LeaseTerms
  readonly retry: RetryTerms
  /** When the claim was sent, by monotonicMs(). */
  readonly claimedAt: number
  /** How long a database that does not answer is asked again. */
  readonly patienceMs: number
  readonly onHeartbeat?: ((error: unknown) => void) | undefined
}

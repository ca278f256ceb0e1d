/** What a launch comes back with: a claim or a conflict. Both are values; neither is an error. */

/**
 * Why a launch lost, which is expected and recorded, and neither a failure nor a success.
 *
 * `held` the same key is processing; `done` and `failed` it is over; `overlap` another run of the same concurrency
 * key is processing; `not_due` its retry or its delay is not over; `paused` an operator paused the task; `pruned` the
 * window is older than the history that was kept; `wait_timeout` it waited as long as it was told to.
 */
export const CONFLICT_REASONS = ['held', 'done', 'failed', 'overlap', 'not_due', 'paused', 'pruned', 'wait_timeout'] as const
export type ConflictReason = (typeof CONFLICT_REASONS)[number]

/** The four policies for a launch that meets a run of the same task or key. */
export const OVERLAP_POLICIES = ['skip', 'wait', 'queue', 'allow'] as const
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number]

/** Who stands in the way, as far as the ledger knows. */
export interface RunHolder {
  readonly taskKey: string
  readonly instanceId: string | null
  readonly host: string | null
  readonly pid: number | null
  readonly launcher: string | null
  readonly attempt: number
  /** When its attempt began. */
  readonly since: Date | null
  /** Its last heartbeat; the lease ends `leaseSeconds` later. */
  readonly heartbeatAt: Date | null
  readonly leaseSeconds: number | null
}

export interface Conflict {
  readonly status: 'conflict'
  readonly reason: ConflictReason
  readonly taskKey: string
  /** Null where nobody holds anything: `paused`, `pruned`, `not_due`. */
  readonly holder: RunHolder | null
  /** For `not_due`: when it will be. */
  readonly dueAt: Date | null
}

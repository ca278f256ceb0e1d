/** The states of a run and the one table of legal moves. The migration's CHECKs repeat it; a test compares the two. */

export const STATUSES = ['pending', 'processing', 'completed', 'failed'] as const
export type Status = (typeof STATUSES)[number]

/** Why a failed run failed. `lost`: its owner stopped renewing the lease. */
export const FAILURE_REASONS = ['error', 'exit', 'signal', 'timeout', 'lost', 'cancelled'] as const
export type FailureReason = (typeof FAILURE_REASONS)[number]

/**
 * How an attempt ended without completing its run; `conflict` is a launch that never became an attempt, and `reopened` one
 * that did complete it, before an operator had the run done again.
 */
export const ATTEMPT_OUTCOMES = ['failed', 'lost', 'released', 'cancelled', 'reopened', 'conflict'] as const
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number]

interface MoveRule {
  readonly from: Status
  readonly to: Status
  /** The line the move leaves in task_attempts; the completing attempt needs none, the run's row carries it. */
  readonly history: AttemptOutcome | null
}

/**
 * Every way a run changes state. Nothing else is legal, and store/transition.ts is the only writer.
 *
 * `take` hands out an attempt (counted here, so that a job which kills its worker is not retried for ever);
 * `release` gives that attempt back. `lose` and `exhaust` close an attempt whose owner is gone: `lose` when
 * attempts are left, `exhaust` when none is. The last four are an operator's: `cancel` ends a run that nobody holds,
 * `stop` is its holder's answer to a cancel; `reopen` and `redo` have a run that is over done again.
 */
export const MOVES = {
  take: { from: 'pending', to: 'processing', history: null },
  complete: { from: 'processing', to: 'completed', history: null },
  retry: { from: 'processing', to: 'pending', history: 'failed' },
  fail: { from: 'processing', to: 'failed', history: 'failed' },
  release: { from: 'processing', to: 'pending', history: 'released' },
  lose: { from: 'processing', to: 'pending', history: 'lost' },
  exhaust: { from: 'processing', to: 'failed', history: 'lost' },
  stop: { from: 'processing', to: 'failed', history: 'cancelled' },
  cancel: { from: 'pending', to: 'failed', history: null },
  reopen: { from: 'failed', to: 'pending', history: null },
  redo: { from: 'completed', to: 'pending', history: 'reopened' },
} as const satisfies Record<string, MoveRule>

export type Move = keyof typeof MOVES

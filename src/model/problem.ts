/** What a monitoring system is told: one problem, how bad it is, and in a sentence what it is. */

export const PROBLEM_KINDS = ['overdue', 'failed', 'stale', 'in_doubt', 'conflicts', 'schema'] as const
export type ProblemKind = (typeof PROBLEM_KINDS)[number]

export interface Problem {
  readonly severity: 'warning' | 'critical'
  readonly kind: ProblemKind
  readonly task: string | null
  /** A run, or for an effect in doubt its run. */
  readonly taskKey: string | null
  readonly since: Date | null
  readonly message: string
}

/** When something counts as a problem. */
export interface Thresholds {
  /** So many failed runs in a row are critical; one is a warning. */
  readonly failures: number
  /** So many launches of a task that overlapped, within the last hour, are a warning. */
  readonly conflicts: number
  /** A lease that ran out so long ago, and nobody closed the attempt, is a warning. */
  readonly staleAfterMs: number
}

export const DEFAULT_THRESHOLDS: Thresholds = { failures: 3, conflicts: 10, staleAfterMs: 300_000 }

/** Retention: which finished runs may go, and what keeps the others. */
import { durationMs, formatDuration, type Duration } from './duration.ts'
import { invalidOption } from './errors.ts'

export interface RetentionTerms {
  readonly olderThanMs: number
  /** Failed runs stay. */
  readonly keepFailed: boolean
  /** Rows stay; only what they carry goes: payloads and results of completed runs, the output of all. */
  readonly payloadsOnly: boolean
  /** Runs under a key of the caller's go too; the same key would then run again. */
  readonly keyed: boolean
  /** Rows a transaction. */
  readonly batch: number
}

/** Below this a slip of the unit (`90s` for `90d`) would empty the ledger. */
const MIN_AGE_MS = 3_600_000
export const MAX_BATCH = 1000
const DEFAULT_BATCH = 500

/** @throws INVALID_OPTION */
export function retentionTerms(options: { olderThan: Duration; keepFailed?: boolean; payloadsOnly?: boolean; keyed?: boolean; batch?: number }): RetentionTerms {
  const { keepFailed = false, payloadsOnly = false, keyed = false, batch = DEFAULT_BATCH } = options
  const olderThanMs = durationMs('older-than', options.olderThan)
  if (olderThanMs < MIN_AGE_MS) throw invalidOption('older-than', `must be at least ${formatDuration(MIN_AGE_MS)}, got ${formatDuration(olderThanMs)}`)
  if (!Number.isInteger(batch) || batch < 1 || batch > MAX_BATCH) throw invalidOption('batch', `must be a whole number from 1 to ${MAX_BATCH}, got ${String(batch)}`)
  if (payloadsOnly && keyed) throw invalidOption('keyed', 'says nothing with payloads-only: no run goes')
  return { olderThanMs, keepFailed, payloadsOnly, keyed, batch }
}

/** What of a task stays whatever its age, as it was when the prune began. */
export interface Kept {
  /** Its newest completed run. */
  readonly lastCompleted: string | null
  /** Windows from here on: the newest one, and the newest one that completed. Null for a task without windows. */
  readonly windowsFrom: Date | null
}

export interface Finished {
  readonly taskKey: string
  readonly task: string
  readonly windowStart: Date | null
}

/**
 * Whether a finished run may go, or why not: `newest`; or `keyed`, since nothing but its row keeps a key from running
 * again. A window's row is replaced by `tasks.pruned_before`; the key of a manual run is made once and never again.
 */
export function retained({ taskKey, task, windowStart }: Finished, { lastCompleted, windowsFrom }: Kept, { keyed }: Pick<RetentionTerms, 'keyed'>): 'newest' | 'keyed' | null {
  if (taskKey === lastCompleted) return 'newest'
  if (windowStart !== null) return windowsFrom === null || windowStart >= windowsFrom ? 'newest' : null
  return keyed || isMadeOnce(taskKey.slice(task.length + 1)) ? null : 'keyed'
}

/** A label that the ledger made itself, of a UUIDv7. */
function isMadeOnce(label: string): boolean {
  return /^(?:[a-z]+-)?[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(label)
}

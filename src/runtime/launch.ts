/** What a caller wants to run, checked at the door and turned into the request of a claim. */
import { durationMs, type Duration } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import { leaseTerms, type LeaseTerms } from '../model/lease.ts'
import { checkTaskName, taskKey } from '../model/names.ts'
import { OVERLAP_POLICIES, type OverlapPolicy } from '../model/outcome.ts'
import { retryTerms, type RetryTerms } from '../model/retry.ts'
import type { Instance } from '../model/run.ts'
import type { Schedule } from '../model/window/schedule.ts'
import { launchWindow, type Window } from '../model/window/window.ts'
import type { ClaimRequest } from '../store/claim.ts'
import { v7 as uuidv7 } from 'uuid'

export interface Launch {
  /** Letters, digits and `_ . / -`. */
  readonly task: string
  /** `cron(…)` or `every(…)`: the run is keyed by the window of `at`. */
  readonly window?: Schedule | undefined
  /** A label of your own instead of a window's. Without either the run is a manual one: only overlap is excluded. */
  readonly key?: string | undefined
  /** The instant that names the window; by default now, on this host's clock, which is also what triggered the launch. */
  readonly at?: Date | undefined
  /** A launch this little before a window's start belongs to that window. Default 2 s. */
  readonly early?: Duration | undefined
  /** What to do when a run of the task is processing. Default `skip`. */
  readonly overlap?: OverlapPolicy | undefined
  /** How long `overlap: 'wait'` waits. */
  readonly waitTimeout?: Duration | undefined
  /** Ends the waiting of `overlap: 'wait'` early, as if its time were over. */
  readonly signal?: AbortSignal | undefined
  /** How long the claim lasts without a heartbeat. Default 60 s. */
  readonly lease?: Duration | undefined
  /** How often the lease is renewed. Default a fifth of it; at most a third. */
  readonly heartbeat?: Duration | undefined
  /** Attempts in all, failed ones too. Without it a failure is final, and only a crash is repeated (three attempts; one for a manual run). */
  readonly maxAttempts?: number | undefined
  /** The pause before the second attempt, doubled for each further one. Default 10 s. */
  readonly backoff?: Duration | undefined
}

/** A launch, checked: nothing in it can fail any more. */
export interface PlannedLaunch {
  readonly request: ClaimRequest
  readonly overlap: OverlapPolicy
  readonly waitMs: number
  readonly signal: AbortSignal | undefined
  readonly lease: LeaseTerms
  readonly retry: RetryTerms
}

const DEFAULT_EARLY = '2s'

/**
 * Checks a launch without touching a database, and names the key it would claim; null for a manual run, whose key is
 * made when it is claimed. @throws INVALID_OPTION
 */
export function checkLaunch(launch: Launch): { readonly taskKey: string | null } {
  const { request } = planLaunch(launch, { id: '', host: '', pid: 0, processIdentity: null, launcher: '' })
  return { taskKey: isManual(launch) ? null : request.taskKey }
}

/** @throws INVALID_OPTION naming the option */
export function planLaunch(launch: Launch, instance: Instance): PlannedLaunch {
  const task = checkTaskName(launch.task)
  const overlap = checkOverlap(launch)
  const lease = leaseTerms(launch.lease, launch.heartbeat)
  const retry = retryTerms(launch.maxAttempts, launch.backoff, isManual(launch))
  const window = windowOf(launch)
  return {
    request: {
      taskKey: taskKey(task, window?.label ?? launch.key ?? `manual-${uuidv7()}`),
      task,
      window: window && { start: window.start, end: window.end, zone: window.zone },
      concurrencyKey: overlap === 'allow' ? null : task,
      maxAttempts: retry.maxAttempts,
      leaseSeconds: lease.leaseMs / 1000,
      instance,
    },
    overlap,
    waitMs: overlap === 'wait' ? durationMs('wait-timeout', launch.waitTimeout!) : 0,
    signal: launch.signal,
    lease,
    retry,
  }
}

function isManual({ window, key }: Launch): boolean {
  return window === undefined && key === undefined
}

function windowOf({ window, key, at = new Date(), early = DEFAULT_EARLY }: Launch): Window | null {
  if (Number.isNaN(at.getTime())) throw invalidOption('at', 'is not an instant')
  const earlyMs = durationMs('early', early, { zero: true })
  if (window === undefined) return null
  if (key !== undefined) throw invalidOption('key', 'cannot stand beside a schedule: the window is the key')
  const found = launchWindow(window, at, earlyMs)
  if (!found) throw invalidOption(window.kind, `${window.source} has no window at or before ${at.toISOString()}`)
  return found
}

function checkOverlap({ overlap = 'skip', waitTimeout }: Launch): OverlapPolicy {
  if (!OVERLAP_POLICIES.includes(overlap)) throw invalidOption('overlap', `must be one of ${OVERLAP_POLICIES.join(', ')}, got ${JSON.stringify(overlap)}`)
  if (overlap === 'wait' && waitTimeout === undefined) throw invalidOption('wait-timeout', 'is needed with overlap wait: nobody waits for ever')
  if (overlap !== 'wait' && waitTimeout !== undefined) throw invalidOption('wait-timeout', 'only goes with overlap wait')
  return overlap
}

/** Leases: how long a claim lasts without a heartbeat, and how often one must come. */
import { durationMs, formatDuration, type Duration } from './duration.ts'
import { invalidOption } from './errors.ts'

export interface LeaseTerms {
  readonly leaseMs: number
  readonly heartbeatMs: number
}

/** Long enough for a slow database or a paused virtual machine, short enough that a dead host is noticed within a minute. */
export const DEFAULT_LEASE_MS = 60_000

/** A lease has room for at least this many heartbeats, so that one late beat is no death (apache/airflow#16573). */
const HEARTBEATS_PER_LEASE = 3

/** Below this a stalled disk looks like a dead owner. */
const MIN_LEASE_MS = 500

/**
 * The terms of a lease; the heartbeat is a fifth of it unless given.
 * @throws INVALID_OPTION for a lease shorter than three heartbeats, or not a sensible duration at all.
 */
export function leaseTerms(lease: Duration = DEFAULT_LEASE_MS, heartbeat?: Duration): LeaseTerms {
  const leaseMs = durationMs('lease', lease)
  if (leaseMs < MIN_LEASE_MS) throw invalidOption('lease', `must be at least ${formatDuration(MIN_LEASE_MS)}, got ${formatDuration(leaseMs)}`)
  const heartbeatMs = heartbeat === undefined ? Math.floor(leaseMs / 5) : durationMs('heartbeat', heartbeat)
  if (leaseMs < HEARTBEATS_PER_LEASE * heartbeatMs) {
    throw invalidOption('lease', `${formatDuration(leaseMs)} is shorter than ${HEARTBEATS_PER_LEASE} heartbeats of ${formatDuration(heartbeatMs)}`)
  }
  return { leaseMs, heartbeatMs }
}

/** A claim whose lease another process keeps: the parts it is made of here, and no heartbeats. */
import type { ClaimRef } from '../model/claim-ref.ts'
import type { ClaimParts } from './claim-parts.ts'
import type { Pacemaker } from './pacemaker.ts'

const NO_BEATS: Pick<Pacemaker, 'start'> = { start: () => ({ stop() {} }) }

export function heldElsewhere(ref: ClaimRef): Pick<ClaimParts, 'claimed' | 'task' | 'window' | 'lease' | 'retry' | 'claimedAt' | 'pacemaker'> {
  const { task, window, taskKey, instanceId, attempt, fence, maxAttempts, leaseMs, heartbeatMs, backoffMs } = ref
  return {
    claimed: { taskKey, instanceId, attempt, fence, maxAttempts },
    task,
    window,
    lease: { leaseMs, heartbeatMs },
    retry: { maxAttempts, afterFailure: backoffMs !== null, backoffMs: backoffMs ?? 0 },
    claimedAt: 0,
    pacemaker: NO_BEATS,
  }
}

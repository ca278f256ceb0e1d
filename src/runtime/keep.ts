/** Keeps the lease of a claim in the name of another process of this host, for as long as that lives. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClaimRef } from '../model/claim-ref.ts'
import { invalidOption } from '../model/errors.ts'
import { closedByUs, heartbeat } from '../store/close.ts'
import type { Store } from '../store/tables.ts'
import { monotonicMs } from './heart.ts'
import type { Pacemaker } from './pacemaker.ts'
import { isProvablyGone, processIdentity } from './process-identity.ts'
import { settle } from './settle.ts'

/** `gone`: the process. `closed`: the claim, by its holder. `lost`: the lease, while the process lives. */
export type KeepEnd = 'gone' | 'closed' | 'lost'

export interface KeepEvents {
  /** Called once, when the lease has been renewed for the first time. */
  kept?(): void
  /** Called once: an operator wants the work stopped. The lease is kept until the process is gone. */
  cancelled?(): void
}

const LOOK_EVERY_MS = 250

export async function keepWhileAlive(store: Store, pacemaker: Pacemaker, patienceMs: number, ref: ClaimRef, pid: number, events: KeepEvents): Promise<KeepEnd> {
  const identity = processIdentity([pid])
  if (identity === null) throw invalidOption('pid', `there is no process ${pid} here (or no /proc to tell)`)
  const sentAt = monotonicMs()
  const first = await settle(store, patienceMs, () => heartbeat(store, ref))
  if (first === 'lost') return closedOrLost(store, ref)
  events.kept?.()
  const cancelled = once(() => events.cancelled?.())
  if (first === 'cancelled') cancelled()
  const end = new AbortController()
  const pulse = pacemaker.start(ref, ref, sentAt, { cancelled, lost: () => end.abort() })
  while (!end.signal.aborted && !isProvablyGone(identity)) await sleep(LOOK_EVERY_MS, undefined, { signal: end.signal }).catch(() => {}) // Only the abort rejects.
  pulse.stop()
  return isProvablyGone(identity) ? 'gone' : closedOrLost(store, ref)
}

function once(act: () => void): () => void {
  let acted = false
  return () => {
    if (!acted) act()
    acted = true
  }
}

/** A beat that finds the row no longer ours may have found that the holder is done. */
async function closedOrLost(store: Store, ref: ClaimRef): Promise<KeepEnd> {
  const closed = await settle(store, 0, () => closedByUs(store, ref)).catch(() => false) // Whoever cannot be asked confirms nothing.
  return closed ? 'closed' : 'lost'
}

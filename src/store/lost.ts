/** Closes attempts whose owner is gone, one run at a time; claims and the reaper share it. */
import type { Run } from '../model/run.ts'
import { leaseIsOver } from './read-run.ts'
import type { Db, Store } from './tables.ts'
import { transition } from './transition.ts'

/** Whether it is proven, here and now, that the process which holds a run no longer exists. */
export type DeathCheck = (run: Pick<Run, 'host' | 'pid' | 'processIdentity'>) => boolean

type Dying = Pick<Run, 'taskKey' | 'instanceId' | 'attempt' | 'maxAttempts' | 'fence' | 'leaseOver' | 'host' | 'pid'>

/**
 * Ends the attempt as `lost`. If the caller saw its lease run out, the write asks the database once more: a heartbeat
 * that came in meanwhile keeps the run where it is.
 * @returns where the run went: `pending` with attempts left, `failed` without; null when it was not there any more
 */
export async function closeDead(store: Store, db: Db, run: Dying): Promise<'pending' | 'failed' | null> {
  const exhausted = run.attempt >= run.maxAttempts
  const closed = await transition(store, db, {
    move: exhausted ? 'exhaust' : 'lose',
    of: run,
    onlyIf: run.leaseOver ? leaseIsOver(store) : undefined,
    set: exhausted ? {} : { available_at: store.now() },
    reason: 'lost',
    ending: { error: `owner lost: ${run.host ?? 'unknown host'} pid ${run.pid ?? '?'} ${run.leaseOver ? 'stopped renewing its lease' : 'is gone'}` },
  })
  if (!closed) return null
  return exhausted ? 'failed' : 'pending'
}

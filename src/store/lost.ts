/** Closes attempts whose owner is gone, one run at a time; claims and the reaper share it. */
import { sql } from 'kysely'
import type { Run } from '../model/run.ts'
import { leaseIsOver } from './read-run.ts'
import type { Db, Store } from './tables.ts'
import { transition } from './transition.ts'

/** Whether it is proven, here and now, that the process which holds a run no longer exists. */
export type DeathCheck = (run: Pick<Run, 'host' | 'pid' | 'processIdentity'>) => boolean

type Dying = Pick<Run, 'taskKey' | 'instanceId' | 'attempt' | 'maxAttempts' | 'fence' | 'leaseOver' | 'host' | 'pid' | 'cancelRequestedAt'>

/**
 * Ends the attempt as `lost`. If the caller saw its lease run out, the write asks the database once more: a heartbeat
 * that came in meanwhile keeps the run where it is. One that an operator wants cancelled is not tried again.
 * @param error why it is taken for dead; by default what was seen of it
 * @returns where the run went: `pending` with attempts left, `failed` without; null when it was not there any more
 */
export async function closeDead(store: Store, db: Db, run: Dying, error = evidence(run)): Promise<'pending' | 'failed' | null> {
  const cancelled = run.cancelRequestedAt !== null
  const exhausted = cancelled || run.attempt >= run.maxAttempts
  const asSeen = cancelled ? sql<boolean>`cancel_requested_at is not null` : sql<boolean>`cancel_requested_at is null`
  const closed = await transition(store, db, {
    move: exhausted ? 'exhaust' : 'lose',
    of: run,
    onlyIf: run.leaseOver ? sql<boolean>`${leaseIsOver(store)} and ${asSeen}` : asSeen,
    reason: cancelled ? 'cancelled' : 'lost',
    ending: { error },
  })
  if (!closed) return null
  return exhausted ? 'failed' : 'pending'
}

function evidence({ host, pid, leaseOver }: Dying): string {
  return `owner lost: ${host ?? 'unknown host'} pid ${pid ?? '?'} ${leaseOver ? 'stopped renewing its lease' : 'is gone'}`
}

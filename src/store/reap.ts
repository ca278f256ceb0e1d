/** One pass over the runs whose lease has run out; any number of passes may run at once, on any hosts. */
import { sql } from 'kysely'
import type { Run } from '../model/run.ts'
import { BY_KEY } from './line.ts'
import { closeDead } from './lost.ts'
import { leaseIsOver, runOf, selectRuns } from './read-run.ts'
import type { Store } from './tables.ts'

export interface ReapedRun {
  readonly run: Run
  /** `pending`: it will be taken up again. `failed`: that was its last attempt. */
  readonly now: 'pending' | 'failed'
}

/** Few enough that a batch is a short transaction. */
const BATCH = 100

/**
 * Closes expired attempts, in the order of their keys, in short transactions, passing over rows that others hold.
 * @param maxLeaseSeconds only leases at most this long: a reaper that was itself cut off from the database gives
 *   owners that were cut off with it one whole lease to come back (quartz-scheduler/quartz#847)
 */
export async function reap(store: Store, maxLeaseSeconds = Infinity): Promise<ReapedRun[]> {
  const reaped: ReapedRun[] = []
  for (;;) {
    const batch = await store.transaction((tx) => reapBatch(store, tx, maxLeaseSeconds))
    reaped.push(...batch)
    if (batch.length < BATCH) return reaped
  }
}

async function reapBatch(store: Store, tx: Parameters<Parameters<Store['transaction']>[0]>[0], maxLeaseSeconds: number): Promise<ReapedRun[]> {
  const expired = selectRuns(store, tx).where('status', '=', 'processing').where(leaseIsOver(store)).orderBy(BY_KEY).limit(BATCH)
  const bounded = maxLeaseSeconds === Infinity ? expired : expired.where(sql<boolean>`lease_seconds <= ${Math.max(maxLeaseSeconds, 0)}`)
  const rows = await store.skipLocked(bounded).execute()
  const reaped: ReapedRun[] = []
  for (const run of rows.map((row) => runOf(store, row))) {
    const now = await closeDead(store, tx, run)
    if (now) reaped.push({ run, now })
  }
  return reaped
}

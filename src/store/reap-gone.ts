/** Closes attempts of this host whose process is proven gone, so that a crash frees its runs before their leases end. */
import { BY_KEY } from './line.ts'
import { closeDead, type DeathCheck } from './lost.ts'
import { runOf, selectRuns } from './read-run.ts'
import type { ReapedRun } from './reap.ts'
import type { Store } from './tables.ts'

/** Few enough that a pass is short; the next one goes on. */
const BATCH = 500

export async function reapGone(store: Store, host: string, isDead: DeathCheck): Promise<ReapedRun[]> {
  const owners = await store.db.selectFrom('task_runs').select('process_identity').distinct().where('status', '=', 'processing').where('host', '=', host).where('process_identity', 'is not', null).execute()
  const gone = owners.map((row) => row.process_identity!).filter((processIdentity) => isDead({ host, pid: null, processIdentity }))
  const reaped: ReapedRun[] = []
  for (const processIdentity of gone) {
    const rows = await selectRuns(store).where('status', '=', 'processing').where('host', '=', host).where('process_identity', '=', processIdentity).orderBy(BY_KEY).limit(BATCH).execute()
    for (const run of rows.map((row) => runOf(store, row))) {
      const now = await store.transaction((tx) => closeDead(store, tx, { ...run, leaseOver: false }))
      if (now) reaped.push({ run, now })
    }
  }
  return reaped
}

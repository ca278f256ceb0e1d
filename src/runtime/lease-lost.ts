/** LEASE_LOST with what the ledger knows now about who has the run. */
import { LedgerError } from '../model/errors.ts'
import type { Run } from '../model/run.ts'
import { readRun } from '../store/read-run.ts'
import type { ClaimParts } from './claim-parts.ts'

interface HeldFacts {
  readonly taskKey: string
  readonly attempt: number
  readonly fence: bigint
  readonly instanceId: string
}

export async function leaseLost({ store, observer, task }: Pick<ClaimParts, 'store' | 'observer' | 'task'>, facts: HeldFacts): Promise<LedgerError> {
  const { taskKey, attempt } = facts
  const run = await readRun(store, taskKey).catch(() => null) // Only for the message; its absence is no answer.
  observer.tell('lost', { task, ...facts, status: run?.status, heldByHost: run?.host, heldByPid: run?.pid })
  return new LedgerError('LEASE_LOST', `${taskKey} attempt ${attempt} is not held by this claim any more; ${standing(run, facts)}; nothing was recorded`, { ...facts })
}

function standing(run: Run | null, { instanceId }: HeldFacts): string {
  if (run === null) return 'the run is gone'
  if (run.status !== 'processing') return `the run is ${run.status}`
  return run.instanceId === instanceId ? 'its lease has run out' : `now held by ${run.host} pid ${run.pid} (attempt ${run.attempt})`
}

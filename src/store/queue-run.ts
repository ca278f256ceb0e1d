/** Records a run as pending, for the holder of its concurrency key or the next launch to take up. */
import { insertUnlessBarred } from './barred.ts'
import { readRun } from './read-run.ts'
import type { ClaimRequest } from './claim.ts'
import { DEFAULT_QUEUE, positionNow } from './line.ts'
import type { Store } from './tables.ts'

/** @returns false when the key is already there, in whatever state, or may not run: then nothing is recorded */
export async function queueRun(store: Store, request: ClaimRequest): Promise<boolean> {
  try {
    return await insertUnlessBarred(store, request, (tx) => tx.insertInto('task_runs').values(pendingRun(store, request)).execute())
  } catch (error) {
    const diagnosis = store.diagnose(error)
    if (diagnosis.kind === 'duplicate' && diagnosis.constraint === 'primary') return false
    // The connection died at the commit: the row says whether it was reached.
    if (diagnosis.kind === 'unavailable' && (await readRun(store, request.taskKey))) return false
    throw error
  }
}

/** The row of a run that waits to be taken up, due at once. */
export function pendingRun(store: Store, { taskKey, task, window, concurrencyKey, maxAttempts }: Omit<ClaimRequest, 'instance' | 'leaseSeconds'>) {
  return {
    task_key: taskKey,
    task_name: task,
    window_start: window && store.instant(window.start),
    window_end: window && store.instant(window.end),
    window_zone: window?.zone ?? null,
    status: 'pending' as const,
    available_at: store.now(),
    created_at: store.now(),
    concurrency_key: concurrencyKey,
    ready_queue: DEFAULT_QUEUE,
    waiting_key: concurrencyKey,
    position: positionNow(store),
    attempt: 0,
    max_attempts: maxAttempts,
    fence: 0n,
  }
}

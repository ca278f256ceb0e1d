/** Records a run as pending, for the holder of its concurrency key or the next launch to take up. */
import { readRun } from './read-run.ts'
import type { ClaimRequest } from './claim.ts'
import { DEFAULT_QUEUE, positionNow } from './line.ts'
import type { Store } from './tables.ts'

/** @returns false when the key is already there, in whatever state */
export async function queueRun(store: Store, request: ClaimRequest): Promise<boolean> {
  const { window } = request
  try {
    await store.statement((db) =>
      db
        .insertInto('task_runs')
        .values({
          task_key: request.taskKey,
          task_name: request.task,
          window_start: window && store.instant(window.start),
          window_end: window && store.instant(window.end),
          window_zone: window?.zone ?? null,
          status: 'pending',
          available_at: store.now(),
          created_at: store.now(),
          concurrency_key: request.concurrencyKey,
          ready_queue: DEFAULT_QUEUE,
          waiting_key: request.concurrencyKey,
          position: positionNow(store),
          attempt: 0,
          max_attempts: request.maxAttempts,
          fence: 0n,
        })
        .execute(),
    )
    return true
  } catch (error) {
    const diagnosis = store.diagnose(error)
    if (diagnosis.kind === 'duplicate' && diagnosis.constraint === 'primary') return false
    // The connection died at the commit: the row says whether it was reached.
    if (diagnosis.kind === 'unavailable' && (await readRun(store, request.taskKey))) return false
    throw error
  }
}

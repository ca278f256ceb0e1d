/** Keeps asking a database that does not answer, and never mistakes "I do not know" for yes or no. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isLedgerError } from '../model/errors.ts'
import { unreachable } from '../dialect/unreachable.ts'
import type { Store } from '../store/tables.ts'
import { monotonicMs } from './heart.ts'

/** What has happened already (a finished job, a performed effect) and cannot be recorded yet is tried for this long. */
export const RECORDING_PATIENCE_MS = 24 * 3_600_000

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

/**
 * Runs `attempt` until it answers, for at most `patienceMs`. The attempt is told whether an earlier one may have taken
 * effect unseen (its connection died before the answer), so that it can read back what happened.
 * @throws DATABASE_UNAVAILABLE with the driver's error as cause, at once when the server refused us; any other error as it is
 */
export async function settle<T>(store: Pick<Store, 'diagnose' | 'place'>, patienceMs: number, attempt: (uncertain: boolean) => Promise<T>): Promise<T> {
  const deadline = monotonicMs() + patienceMs
  let uncertain = false
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      return await attempt(uncertain)
    } catch (raw) {
      const error = unreachable(store.diagnose, store.place, raw)
      if (!isRetryable(error) || monotonicMs() + pause > deadline) throw error
      uncertain = true
    }
    await sleep(pause * (0.5 + Math.random() / 2))
  }
}

function isRetryable(error: unknown): boolean {
  return isLedgerError(error) && error.code === 'DATABASE_UNAVAILABLE' && error.facts['retryable'] !== false
}

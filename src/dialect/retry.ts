/** Tries work again when the database says it was rolled back for certain; anything else rises at once. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Diagnosis } from './dialect.ts'

const FIRST_PAUSE_MS = 2
const LONGEST_PAUSE_MS = 200
/** A contended ledger settles within seconds; one that does not in this time has a problem of its own. */
const PATIENCE_MS = 60_000

/**
 * Runs `work` until it does not fail transiently, with full jitter between tries so that many who collided do not
 * collide again. Awaits its pauses: a busy SQLite file never blocks the event loop.
 * @throws the last error when patience is over, or the first that is not transient
 */
export async function retryTransient<T>(diagnose: (error: unknown) => Diagnosis, work: () => Promise<T>): Promise<T> {
  let deadline: number | undefined // Counted from the first failure: work that goes well asks for no clock.
  for (let ceiling = FIRST_PAUSE_MS; ; ceiling = Math.min(ceiling * 2, LONGEST_PAUSE_MS)) {
    try {
      return await work()
    } catch (error) {
      deadline ??= performance.now() + PATIENCE_MS
      if (diagnose(error).kind !== 'transient' || performance.now() > deadline) throw error
    }
    await sleep(1 + Math.random() * ceiling)
  }
}

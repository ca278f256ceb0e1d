/** Gives back many runs of one instance that were taken and not begun: pending again at once, the attempt not counted. */
import type { Ending, Holder } from '../model/run.ts'
import type { Store } from './tables.ts'
import { lockFences } from './take-keyed.ts'
import { transition } from './transition.ts'
import { comeForward } from './complete-batch.ts'

const BATCH = 100

export async function releaseMany(store: Store, held: readonly (Holder & { readonly concurrencyKey: string | null })[], ending: Ending = {}): Promise<void> {
  for (let at = 0; at < held.length; at += BATCH) {
    const part = held.slice(at, at + BATCH).toSorted((a, b) => (a.taskKey < b.taskKey ? -1 : 1))
    const keys = [...new Set(part.flatMap(({ concurrencyKey }) => concurrencyKey ?? []))]
    await store.transaction(async (tx) => {
      if (keys.length > 0) await lockFences(store, tx, keys)
      // One that is not ours any more is nobody's loss: it was not begun.
      for (const of of part) await transition(store, tx, { move: 'release', of, set: { attempt: of.attempt - 1 }, ending })
      if (keys.length > 0) await comeForward(store, tx, keys)
    })
  }
}

/** Commits the caller's statements and the completion of the run as one transaction: both are there, or neither. */
import type { Transaction } from 'kysely'
import type { Holder } from '../model/run.ts'
import { completedByUs } from '../store/close.ts'
import type { Db, Store } from '../store/tables.ts'
import { transition } from '../store/transition.ts'
import { RECORDING_PATIENCE_MS, settle } from './settle.ts'

/** The caller's statements. Called again when the database rolled them back, so it must have no effect outside `tx`. */
// eslint-disable-next-line typescript/no-explicit-any -- the tables are the caller's
export type Work<T, Tables = any> = (tx: Transaction<Tables>) => Promise<T>

/** What the work returned in the try that was committed. */
export type Together<T> = { readonly value: T }

/** Thrown to roll back, and caught here. */
const NOT_OURS = Symbol('the run is not held by this claim any more')

/**
 * The run is completed last, so that its row is not locked while the caller works and heartbeats pass. When the
 * COMMIT had no answer the run is read back: completed by us, then all of it is there; otherwise the whole of it is
 * tried again, and a commit that arrives late makes the second one lose its guard.
 * @returns null when the run was not ours any more: then nothing was written
 */
export async function commitTogether<T>(store: Store, holder: Holder, work: Work<T>): Promise<Together<T> | null> {
  /** Of a try whose COMMIT was sent, and who knows. */
  let unseen: Together<T> | null = null
  const end = await settle(store, RECORDING_PATIENCE_MS, async (uncertain): Promise<Together<T> | 'lost' | { readonly thrown: unknown }> => {
    if (uncertain && unseen && (await completedByUs(store, holder))) return unseen
    let own: { readonly thrown: unknown } | null = null
    let done: Together<T> | null = null
    try {
      return await store.transaction(async (tx) => {
        try {
          done = { value: await work(tx.withoutPlugins()) }
        } catch (thrown) {
          own = { thrown }
          throw thrown
        }
        own = null
        if (!(await completeOn(store, tx, holder))) throw NOT_OURS
        return done
      })
    } catch (error) {
      if (error === NOT_OURS) return unseen && (await completedByUs(store, holder)) ? unseen : 'lost'
      // Thrown by the work, so no COMMIT was sent: the outcome is known, and the error is the caller's own.
      if (own) return own
      unseen = done ?? unseen
      throw error
    }
  })
  if (end === 'lost') return null
  if ('thrown' in end) throw end.thrown
  return end
}

/** The guarded write on the caller's connection or transaction; it counts when that commits. */
export function completeOn(store: Store, db: Db, holder: Holder): Promise<boolean> {
  return transition(store, db, { move: 'complete', of: holder })
}

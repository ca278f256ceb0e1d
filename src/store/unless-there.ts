/** An INSERT that gives way to a row which has the key already: of several who bring the same news one writes. */
import type { Db, Store } from './tables.ts'

/** @returns false when the key was there. @throws every other error, a violation of another constraint too */
export async function unlessThere(store: Store, insert: (db: Db) => Promise<unknown>): Promise<boolean> {
  try {
    await store.statement(insert)
    return true
  } catch (error) {
    const diagnosis = store.diagnose(error)
    if (diagnosis.kind !== 'duplicate' || diagnosis.constraint !== 'primary') throw error
    return false
  }
}

/** Records an ending in the fullest form that the database takes: recording a failure must itself never fail. */
import type { Ending } from '../model/run.ts'
import type { Store } from '../store/tables.ts'

/** @param forms the same ending, plainer each time */
export async function writeAcceptable(store: Store, forms: readonly Ending[], write: (form: Ending) => Promise<boolean>): Promise<boolean> {
  for (const form of forms.slice(0, -1)) {
    try {
      return await write(form)
    } catch (error) {
      if (store.diagnose(error).kind !== 'other') throw error
    }
  }
  return write(forms.at(-1)!)
}

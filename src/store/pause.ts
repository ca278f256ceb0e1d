/** Pauses a task for all hosts, and lets it go on. The claim asks for it in its own statement (see barred.ts). */
import type { Action, Actor } from '../model/action.ts'
import { recordAction } from './record-action.ts'
import type { Store } from './tables.ts'
import { unlessThere } from './unless-there.ts'

/** @returns false when it was so already: then nothing was changed, and nothing recorded */
export async function setPaused(store: Store, task: string, paused: boolean, action: Action, by: Actor): Promise<boolean> {
  // A task that never ran may be paused as well: its first launch finds it so.
  if (paused) await unlessThere(store, (db) => db.insertInto('tasks').values({ task_name: task }).execute())
  return store.transaction(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('tasks')
      .set(paused ? { paused_at: store.now(), paused_by: `${by.user}@${by.host}`, paused_because: action.because } : { paused_at: null, paused_by: null, paused_because: null })
      .where('task_name', '=', task)
      .where('paused_at', paused ? 'is' : 'is not', null)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) return false
    await recordAction(store, tx, action, by)
    return true
  })
}

/** Has a failed run done again: pending at once, with attempts to spend, and with the line that says who wanted it. */
import type { Action, Actor } from '../model/action.ts'
import { recordAction } from './record-action.ts'
import type { Store } from './tables.ts'
import { transition } from './transition.ts'

export interface Reopened {
  readonly taskKey: string
  /** The attempt that was its last. */
  readonly attempt: number
}

/** @returns false when it is not failed, or not after that attempt, any more: nothing changed then */
export async function reopen(store: Store, { taskKey, attempt }: Reopened, moreAttempts: number, action: Action, by: Actor): Promise<boolean> {
  return store.transaction(async (tx) => {
    const moved = await transition(store, tx, {
      move: 'reopen',
      of: { taskKey, instanceId: null, attempt, fence: 0n },
      set: { max_attempts: attempt + moreAttempts, available_at: store.now() },
    })
    if (moved) await recordAction(store, tx, action, by)
    return moved
  })
}

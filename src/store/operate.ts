/**
 * What an operator does to a run: cancel it, have it done again, free it of a dead holder. Each is one transaction of a
 * guarded move and its line in task_actions, so that neither is there without the other.
 */
import { sql } from 'kysely'
import type { Action, Actor } from '../model/action.ts'
import type { Run } from '../model/run.ts'
import { closeDead } from './lost.ts'
import { recordAction } from './record-action.ts'
import type { Db, Store } from './tables.ts'
import { transition, type Transition } from './transition.ts'

/** `moved`: the run is not any more as it was seen, so look again; nothing was changed. */
export type Operated<T extends string> = T | 'moved'

/** Ends a pending run as cancelled; it is not tried again. */
export function cancelPending(store: Store, run: Run, action: Action, by: Actor): Promise<Operated<'cancelled'>> {
  return recorded(store, action, by, async (tx) => ((await transition(store, tx, { move: 'cancel', of: asSeen(run), reason: 'cancelled', ending: { error: told('cancelled', action, by) } })) ? 'cancelled' : 'moved'))
}

/**
 * Asks the holder of a run to stop: its next heartbeat sees it. To ask twice is to ask once.
 * @param gone nobody is left to see it: the attempt is closed with it, unless a heartbeat came in meanwhile
 */
export function requestCancel(store: Store, run: Run, gone: boolean, action: Action, by: Actor): Promise<Operated<'requested' | 'cancelled'>> {
  return recorded(store, action, by, async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('task_runs')
      .set({ cancel_requested_at: sql`coalesce(cancel_requested_at, ${store.now()})` })
      .where('task_key', '=', run.taskKey)
      .where('instance_id', '=', run.instanceId)
      .where('attempt', '=', run.attempt)
      .where('fence', '=', run.fence)
      .where('status', '=', 'processing')
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) return 'moved'
    const closed = gone && (await closeDead(store, tx, { ...run, cancelRequestedAt: run.cancelRequestedAt ?? new Date() }))
    return closed ? 'cancelled' : 'requested'
  })
}

/**
 * Closes the attempt of a holder that is gone, on the operator's word where the lease still runs: its later writes are refused.
 * @returns where the run went: `pending` with attempts left, `failed` without (or cancelled)
 */
export function releaseDead(store: Store, run: Run, action: Action, by: Actor): Promise<Operated<'pending' | 'failed'>> {
  return recorded(store, action, by, async (tx) => (await closeDead(store, tx, run, told('released', action, by))) ?? 'moved')
}

type Seen = Pick<Run, 'taskKey' | 'attempt'>

/** Makes a failed run pending again, with `attempts` more. */
export function reopen(store: Store, run: Seen, attempts: number, action: Action, by: Actor): Promise<Operated<'pending'>> {
  return recorded(store, action, by, (tx) => again(store, tx, run, attempts, { move: 'reopen' }))
}

/** Makes a completed run pending again; the attempt that completed it becomes a line of history. */
export function redo(store: Store, run: Run, attempts: number, action: Action, by: Actor): Promise<Operated<'pending'>> {
  const { exitCode, error, outputTail, finishedAt } = run
  return recorded(store, action, by, (tx) => again(store, tx, run, attempts, { move: 'redo', ending: { exitCode, error, outputTail }, endedAt: finishedAt! }))
}

async function again(store: Store, tx: Db, run: Seen, attempts: number, how: Pick<Transition, 'move' | 'ending' | 'endedAt'>): Promise<Operated<'pending'>> {
  const moved = await transition(store, tx, { ...how, of: asSeen(run), set: { max_attempts: run.attempt + attempts } })
  return moved ? 'pending' : 'moved'
}

/** The move and its record, or neither. */
function recorded<T extends string>(store: Store, action: Action, by: Actor, move: (tx: Db) => Promise<Operated<T>>): Promise<Operated<T>> {
  return store.transaction(async (tx) => {
    const outcome = await move(tx)
    if (outcome !== 'moved') await recordAction(store, tx, action, by)
    return outcome
  })
}

/** Of a run that nobody holds: no instance and no fence is asked for. */
function asSeen({ taskKey, attempt }: Seen) {
  return { taskKey, attempt, fence: 0n, instanceId: null }
}

function told(done: string, { because }: Action, by: Actor): string {
  return `${done} by ${by.user} on ${by.host}${because === null ? '' : `: ${because}`}`
}

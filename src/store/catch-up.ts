/**
 * Finds the windows that nobody ran before a launch, and records those that are to be caught up as pending, in one
 * transaction with the cursor that moves past them: of several launches one does it, and a crash leaves all or nothing.
 */
import { sql } from 'kysely'
import { expectedFrom, inBatches, windowsBack } from '../model/expected.ts'
import { taskKey } from '../model/names.ts'
import { scheduleOf, type Task } from '../model/task.ts'
import type { Window } from '../model/window/window.ts'
import type { ClaimRequest } from './claim.ts'
import { knownStarts, refusals } from './find-runs.ts'
import { pendingRun } from './queue-run.ts'
import { readTask } from './read-task.ts'
import type { Store } from './tables.ts'

/** Windows without a run, right before a launch. */
export interface Gap {
  /** How many; of a longer gap than 20000 windows the latest. */
  readonly missed: number
  /** When the earliest of them begins. */
  readonly since: Date
  /** The keys that are pending now, the oldest window first. */
  readonly queued: readonly string[]
}

const WINDOWS_AT_ONCE = 200
const MOST_WINDOWS = 20_000
/** The cursor is moved without a gap only when looking back has become this long, so that most launches write nothing. */
const LONG_LOOK = 16
const MAX_ROUNDS = 10

type Launched = ClaimRequest & { readonly window: { readonly start: Date } }

/** @returns null when every window before this one has its run, or was refused one by the policy */
export async function catchUp(store: Store, request: Launched): Promise<Gap | null> {
  for (let round = 1; ; round++) {
    const task = await readTask(store, request.task)
    const from = task && lookFrom(task, request.window.start)
    if (!task || !from) return null
    const { missed, looked } = await findMissed(store, task, from, request.window.start)
    const queued = chosen(task, missed)
    if (task.catchUp === 'none' || (missed.length === 0 && looked < LONG_LOOK)) return gapOf(missed, [])
    try {
      return (await moveCursor(store, request, queued)) ? gapOf(missed, queued) : null
    } catch (error) {
      // Somebody began or queued one of them between our look and our write: look again.
      if (store.diagnose(error).kind !== 'duplicate' || round === MAX_ROUNDS) throw error
    }
  }
}

/** Without catch-up there is no cursor, and windows are looked at only as far back as the gap reaches. */
function lookFrom(task: Task, before: Date): Date | null {
  const expected = expectedFrom(task)
  if (!expected || task.pausedAt !== null) return null // What a pause keeps back is missed when it is over.
  const cursor = task.catchUp === 'none' ? null : task.accountedBefore
  return new Date(Math.max(expected.getTime(), cursor?.getTime() ?? -Infinity, before.getTime() - task.catchUpMaxAgeMs))
}

/** The latest first. Without catch-up only those that touch the launch: the launch after an earlier gap has told of it. */
async function findMissed(store: Store, task: Task, from: Date, before: Date): Promise<{ missed: Window[]; looked: number }> {
  const missed: Window[] = []
  let looked = 0
  for (const batch of inBatches(windowsBack(scheduleOf(task)!, before, from), WINDOWS_AT_ONCE)) {
    const found = await withoutRun(store, task, batch)
    const ran = task.catchUp === 'none' ? batch.findIndex((window) => !found.includes(window)) : -1
    missed.push(...(ran < 0 ? found : batch.slice(0, ran)))
    looked += batch.length
    if (ran >= 0 || looked >= MOST_WINDOWS) break
  }
  return { missed, looked }
}

async function withoutRun(store: Store, { name }: Task, batch: readonly Window[]): Promise<Window[]> {
  const known = await knownStarts(store, name, batch.at(-1)!.start, new Date(batch[0]!.start.getTime() + 1))
  const absent = batch.filter(({ start }) => !known.has(start.getTime()))
  const reasons = await refusals(store, absent.map(({ label }) => taskKey(name, label)))
  // Its launch met another run, and the declared policy was to do without it.
  return absent.filter(({ label }) => !['overlap', 'wait_timeout'].includes(reasons.get(taskKey(name, label)) ?? ''))
}

/** The oldest first. */
function chosen({ name, catchUp, catchUpMaxCount }: Task, missed: readonly Window[]): (Window & { taskKey: string })[] {
  const most = catchUp === 'all' ? catchUpMaxCount : catchUp === 'latest' ? 1 : 0
  return missed.slice(0, most).toReversed().map((window) => ({ ...window, taskKey: taskKey(name, window.label) }))
}

/** @returns false when another launch has accounted for these windows meanwhile */
async function moveCursor(store: Store, request: Launched, queued: readonly (Window & { taskKey: string })[]): Promise<boolean> {
  const before = store.instant(request.window.start)
  return store.transaction(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('tasks')
      .set({ accounted_before: before })
      .where('task_name', '=', request.task)
      .where('catch_up', 'in', ['latest', 'all'])
      .where(sql<boolean>`(accounted_before is null or accounted_before < ${before})`)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) return false
    if (queued.length > 0) await tx.insertInto('task_runs').values(queued.map((window) => pendingRun(store, { ...request, taskKey: window.taskKey, window }))).execute()
    return true
  })
}

function gapOf(missed: readonly Window[], queued: readonly { taskKey: string }[]): Gap | null {
  const earliest = missed.at(-1)
  return earliest ? { missed: missed.length, since: earliest.start, queued: queued.map(({ taskKey }) => taskKey) } : null
}

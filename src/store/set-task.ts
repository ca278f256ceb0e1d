/** What an operator says of a task, written together with the line that says who and why. */
import type { UpdateObject } from 'kysely'
import type { Action, Actor } from '../model/action.ts'
import { scheduleText, type Task, type TaskTerms } from '../model/task.ts'
import { wasRecorded } from './list-actions.ts'
import { readTask } from './read-task.ts'
import { recordAction } from './record-action.ts'
import type { Db, Store, Tables } from './tables.ts'

type Changes = UpdateObject<Tables, 'tasks'>

/** Sent again after an unknown commit, an action with an id is done once. @returns the task as it is now */
export async function setTask(store: Store, name: string, terms: TaskTerms, action: Action, by: Actor): Promise<Task> {
  const write = () =>
    store.transaction(async (tx) => {
      const task = await readTask(store, name, tx)
      await save(tx, name, task !== null, changesOf(store, task, terms))
      await recordAction(store, tx, action, by)
      return (await readTask(store, name, tx))!
    })
  try {
    return await write()
  } catch (error) {
    if (store.diagnose(error).kind !== 'duplicate') throw error
    // Either it was done at the first sending, or a launch has made the row meanwhile and now it is there to be changed.
    return action.id !== undefined && (await wasRecorded(store, action.id)) ? (await readTask(store, name))! : write()
  }
}

async function save(tx: Db, name: string, isKnown: boolean, changes: Changes): Promise<void> {
  if (!isKnown) await tx.insertInto('tasks').values({ task_name: name, schedule: null, zone: null, overlap: null, grace_seconds: null }).execute()
  await tx.updateTable('tasks').set(changes).where('task_name', '=', name).execute()
}

function changesOf(store: Store, task: Task | null, terms: TaskTerms): Changes {
  const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1000)
  const changes: Changes = {
    ...scheduleChanges(store, task, terms),
    ...(terms.overlap === 'launched' ? { overlap_set_at: null } : terms.overlap && { overlap: terms.overlap, overlap_set_at: store.now() }),
    grace_seconds: seconds(terms.graceMs),
    catch_up: terms.catchUp,
    catch_up_max_age_seconds: seconds(terms.catchUpMaxAgeMs),
    catch_up_max_count: terms.catchUpMaxCount,
    ...cursorChanges(store, task, terms),
  }
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
}

/** Windows of a new schedule are expected from now on, unless `since` says otherwise. */
function scheduleChanges(store: Store, task: Task | null, { schedule, since }: TaskTerms): Changes {
  const from = since && { expected_since: store.instant(since) }
  if (schedule === undefined) return { ...from }
  if (schedule === 'launched') return { schedule_set_at: null, ...from }
  if (schedule === null) return { schedule: null, zone: null, schedule_set_at: store.now(), expected_since: null }
  const kept = scheduleText(schedule)!
  const isNew = task?.expectedSince == null || task.schedule !== kept.schedule || task.zone !== kept.zone
  return { ...kept, schedule_set_at: store.now(), ...(isNew && { expected_since: store.now() }), ...from }
}

/** Whoever turns catch-up on means the windows from now on: what was missed before is not run without being asked for. */
function cursorChanges(store: Store, task: Task | null, { catchUp, since }: TaskTerms): Changes {
  if (since) return { accounted_before: store.instant(since) }
  const turnsOn = catchUp !== undefined && catchUp !== 'none' && (task?.catchUp ?? 'none') === 'none'
  return turnsOn ? { accounted_before: store.now() } : {}
}

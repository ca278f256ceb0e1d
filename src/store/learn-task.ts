/**
 * What a launch by a schedule says about its task, learned: the schedule itself, the policy, and who launches it.
 * A launch reads one statement and, when nothing is new, writes nothing.
 */
import { sql } from 'kysely'
import type { OverlapPolicy } from '../model/outcome.ts'
import { scheduleOf, type Task } from '../model/task.ts'
import { windowAt } from '../model/window/window.ts'
import { taskOf } from './read-task.ts'
import type { Db, Store } from './tables.ts'
import { unlessThere } from './unless-there.ts'

/** A launch, as far as it speaks of its task. */
export interface Sighting {
  readonly task: string
  readonly schedule: string
  readonly zone: string
  readonly overlap: OverlapPolicy
  readonly host: string
  readonly launcher: string
  /** When the window of the launch begins: the first that is expected, if its schedule is new. */
  readonly windowStart: Date
  /** The key of the window before; null when there is none. */
  readonly keyBefore: string | null
}

/** What was known when a launch spoke. */
export interface Known {
  readonly task: Task
  /** Whether the window before that of the launch has a run, in whatever state. */
  readonly ranBefore: boolean
}

/** How old the record of a launcher may become before it is renewed. */
const SEEN_AGAIN_SECONDS = 3600
/** So many launchers of a task are remembered, those seen latest. */
const MOST_LAUNCHERS = 50
/** A person who tries a schedule does not change the task's. */
const BY_HAND = 'tty'

/** @returns the task as it was before this launch; null when it was not known */
export async function learnTask(store: Store, seen: Sighting): Promise<Known | null> {
  const { known, secondsAgo } = await look(store, seen)
  const task = known?.task
  if (!task) await insertTask(store, seen)
  else if (isNew(task, seen) && (await mayTakeOver(store, task, seen, secondsAgo))) await changeTask(store, task, seen)
  else if (secondsAgo === null || secondsAgo >= SEEN_AGAIN_SECONDS) await changePolicy(store, task, seen)
  if (secondsAgo === null || secondsAgo >= SEEN_AGAIN_SECONDS) await recordLauncher(store, seen)
  return known
}

/** Three primary keys in one statement. */
async function look(store: Store, seen: Sighting): Promise<{ known: Known | null; secondsAgo: number | null }> {
  const row = await store.db
    .selectFrom('tasks')
    .leftJoin('task_launchers', (join) =>
      join
        .onRef('task_launchers.task_name', '=', 'tasks.task_name')
        .on('task_launchers.host', '=', seen.host)
        .on('task_launchers.launcher', '=', seen.launcher)
        .on('task_launchers.schedule', '=', seen.schedule)
        .on('task_launchers.zone', '=', seen.zone),
    )
    .leftJoin('task_runs', (join) => join.on('task_runs.task_key', '=', seen.keyBefore ?? ''))
    .selectAll('tasks')
    .select('task_runs.task_key as ran_before')
    .select(store.secondsBetween(sql.ref('task_launchers.last_seen_at'), store.now()).as('seconds_ago'))
    .where('tasks.task_name', '=', seen.task)
    .executeTakeFirst()
  if (!row) return { known: null, secondsAgo: null }
  return { known: { task: taskOf(store, row), ranBefore: row.ran_before !== null }, secondsAgo: row.seconds_ago === null ? null : Number(row.seconds_ago) }
}

function isNew(task: Task, seen: Sighting): boolean {
  return task.scheduleSetAt === null && (task.schedule !== seen.schedule || task.zone !== seen.zone)
}

/**
 * Of two schedules that are both in use, which is a mistake for `doctor` to show, the recorded one stays, lest it change
 * with every launch. A schedule that nobody has used before is an edited crontab and counts at once; a known one when the
 * recorded has opened two windows without being launched.
 */
async function mayTakeOver(store: Store, task: Task, seen: Sighting, secondsAgo: number | null): Promise<boolean> {
  if (task.schedule === null) return true
  if (seen.launcher === BY_HAND) return false
  const rows = await store.db
    .selectFrom('task_launchers')
    .select(['schedule', 'zone', sql<unknown>`max(last_seen_at)`.as('last_seen_at')])
    .where('task_name', '=', task.name)
    .groupBy(['schedule', 'zone'])
    .execute()
  if (secondsAgo === null && !rows.some((row) => row.schedule === seen.schedule && row.zone === seen.zone)) return true
  const recorded = rows.find((row) => row.schedule === task.schedule && row.zone === task.zone)
  const lastSeenAt = recorded && store.readInstant(recorded.last_seen_at)
  return !lastSeenAt || isLongAgo(task, lastSeenAt, seen.windowStart)
}

function isLongAgo(task: Task, lastSeenAt: Date, now: Date): boolean {
  const schedule = scheduleOf(task)!
  const latest = windowAt(schedule, now)
  const before = latest && windowAt(schedule, new Date(latest.start.getTime() - 1))
  return before !== null && lastSeenAt.getTime() + SEEN_AGAIN_SECONDS * 1000 < before.start.getTime()
}

async function insertTask(store: Store, seen: Sighting): Promise<void> {
  const { task, schedule, zone, overlap, windowStart } = seen
  await unlessThere(store, (db) => db.insertInto('tasks').values({ task_name: task, schedule, zone, overlap, grace_seconds: null, expected_since: store.instant(windowStart) }).execute())
}

/** The guard is what was read: of several launches that bring the same news one writes. */
async function changeTask(store: Store, task: Task, { schedule, zone, overlap, windowStart }: Sighting): Promise<void> {
  await ifFree(store, task.name, async (tx) => {
    const update = tx
      .updateTable('tasks')
      .set({ schedule, zone, expected_since: store.instant(windowStart), ...(task.overlapSetAt === null && { overlap }) })
      .where('task_name', '=', task.name)
      .where('schedule_set_at', 'is', null)
    await (task.schedule === null ? update.where('schedule', 'is', null) : update.where('schedule', '=', task.schedule).where('zone', '=', task.zone)).execute()
  })
}

async function changePolicy(store: Store, task: Task, { overlap }: Sighting): Promise<void> {
  if (task.overlapSetAt !== null || task.overlap === overlap) return
  await ifFree(store, task.name, (tx) => tx.updateTable('tasks').set({ overlap }).where('task_name', '=', task.name).where('overlap_set_at', 'is', null).execute())
}

async function recordLauncher(store: Store, { task, host, launcher, schedule, zone }: Sighting): Promise<void> {
  const { numUpdatedRows } = await store.statement((db) =>
    db
      .updateTable('task_launchers')
      .set({ last_seen_at: store.now() })
      .where('task_name', '=', task)
      .where('host', '=', host)
      .where('launcher', '=', launcher)
      .where('schedule', '=', schedule)
      .where('zone', '=', zone)
      .executeTakeFirstOrThrow(),
  )
  if (numUpdatedRows > 0n) return
  await forgetOldest(store, task)
  await unlessThere(store, (db) => db.insertInto('task_launchers').values({ task_name: task, host, launcher, schedule, zone, first_seen_at: store.now(), last_seen_at: store.now() }).execute())
}

/** Where each launch has a host of its own, as in a cluster, the list would otherwise grow with every one. */
async function forgetOldest(store: Store, task: string): Promise<void> {
  const rows = await store.db.selectFrom('task_launchers').select(['host', 'launcher', 'schedule', 'zone']).where('task_name', '=', task).orderBy('last_seen_at', 'desc').offset(MOST_LAUNCHERS - 1).limit(MOST_LAUNCHERS).execute()
  for (const row of rows) {
    const { host, launcher, schedule, zone } = row
    await store.statement((db) => db.deleteFrom('task_launchers').where('task_name', '=', task).where('host', '=', host).where('launcher', '=', launcher).where('schedule', '=', schedule).where('zone', '=', zone).execute())
  }
}

/** Whoever holds the task's row (a pause, a catch-up, a forgotten session) is not waited for: the next launch says it again. */
async function ifFree(store: Store, task: string, work: (tx: Db) => Promise<unknown>): Promise<void> {
  await store.transaction(async (tx) => {
    const free = await store.skipLocked(tx.selectFrom('tasks').select('task_name').where('task_name', '=', task) as never).execute()
    if (free.length > 0) await work(tx)
  })
}

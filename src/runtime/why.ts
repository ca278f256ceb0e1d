/** Why a run or a task is where it is: who holds it and on what evidence, what stands in its way, what was refused. */
import { isLedgerError } from '../model/errors.ts'
import { taskKey } from '../model/names.ts'
import type { HistoryLine, Run } from '../model/run.ts'
import { scheduleOf, type Task, type TaskLauncher } from '../model/task.ts'
import type { Schedule } from '../model/window/schedule.ts'
import { windowAt, windowsBetween, type Window } from '../model/window/window.ts'
import { readActive, readRun } from '../store/read-run.ts'
import { listLaunchers, readNow, readTask } from '../store/read-task.ts'
import { conflictsOf, lastAttemptOf, readPause, runsOf, type Pause } from '../store/standing.ts'
import type { Store } from '../store/tables.ts'
import { traceOf } from './process-identity.ts'

/** What is known of the holder of a run. */
export interface Evidence {
  /** `dead`: its lease has run out, or this host can prove that its process is gone; then anybody may take the run over. */
  readonly verdict: 'alive' | 'dead'
  /** When its lease ends, on the database's clock, unless it is renewed. */
  readonly leaseEndsAt: Date
  /** What this host can tell of its process; `unknown` where it runs elsewhere. */
  readonly process: 'here' | 'gone' | 'unknown'
}

export interface HeldRun {
  readonly run: Run
  readonly evidence: Evidence
}

interface Seen {
  /** The database's clock when this was read. */
  readonly now: Date
  readonly task: string
  readonly paused: Pause | null
  /** The newest launches that lost, the newest first. */
  readonly conflicts: readonly HistoryLine[]
}

export interface RunReasons extends Seen {
  readonly about: 'run'
  readonly run: Run
  /** Null unless the run is processing. */
  readonly evidence: Evidence | null
  /** The run that holds the concurrency key of a pending one. */
  readonly inTheWay: HeldRun | null
  /** How its last attempt ended that did not complete it. */
  readonly lastAttempt: HistoryLine | null
}

export interface TaskReasons extends Seen {
  readonly about: 'task'
  readonly processing: readonly HeldRun[]
  /** The oldest of them. */
  readonly pending: readonly Run[]
  readonly lastCompleted: Run | null
  readonly lastFailed: Run | null
  readonly schedule: Scheduled | null
  /** The window that began last, by that schedule, and the run that it has, if it has one. */
  readonly latest: { readonly window: Window; readonly run: Run | null } | null
}

/** How the task's windows are known to come, and who has launched them. */
export interface Scheduled {
  readonly schedule: Schedule
  /** Who was seen last comes first. */
  readonly launchers: readonly TaskLauncher[]
}

/** A key under which no run is recorded, of a task that is known. */
export interface AbsentReasons extends Seen {
  readonly about: 'absent'
  readonly taskKey: string
  /** The window of that key, if the task's schedule has it. */
  readonly window: Window | null
  readonly schedule: Scheduled | null
}

const SHOWN = 5

/** @returns null when nothing is recorded of it */
export async function why(store: Store, subject: string): Promise<RunReasons | TaskReasons | AbsentReasons | null> {
  return (await whyRun(store, subject)) ?? (await whyTask(store, subject)) ?? whyAbsent(store, subject)
}

async function whyRun(store: Store, taskKey: string): Promise<RunReasons | null> {
  const run = await readRun(store, taskKey)
  if (!run) return null
  const { task, concurrencyKey } = run
  const active = run.status === 'pending' && concurrencyKey !== null ? await readActive(store, concurrencyKey) : null
  return {
    about: 'run',
    run,
    task,
    now: await readNow(store),
    paused: await readPause(store, task),
    evidence: run.status === 'processing' ? evidenceOf(run) : null,
    inTheWay: active && { run: active, evidence: evidenceOf(active) },
    lastAttempt: await lastAttemptOf(store, taskKey),
    conflicts: await conflictsOf(store, { taskKey }, SHOWN),
  }
}

async function whyTask(store: Store, task: string): Promise<TaskReasons | null> {
  const now = await readNow(store)
  const processing = (await runsOf(store, task, 'processing', SHOWN)).map((run) => ({ run, evidence: evidenceOf(run) }))
  const pending = await runsOf(store, task, 'pending', SHOWN)
  const [lastCompleted = null] = await runsOf(store, task, 'completed', 1)
  const [lastFailed = null] = await runsOf(store, task, 'failed', 1)
  const paused = await readPause(store, task)
  const conflicts = await conflictsOf(store, { task }, SHOWN)
  const schedule = await scheduled(store, task)
  const latest = schedule && windowAt(schedule.schedule, now)
  const isKnown = processing.length + pending.length + conflicts.length > 0 || lastCompleted !== null || lastFailed !== null || paused !== null || schedule !== null
  if (!isKnown) return null
  return {
    about: 'task', task, now, paused, processing, pending, lastCompleted, lastFailed, conflicts, schedule,
    latest: latest && { window: latest, run: await readRun(store, taskKey(task, latest.label)) },
  }
}

async function whyAbsent(store: Store, key: string): Promise<AbsentReasons | null> {
  const [task = '', ...label] = key.split(':')
  const schedule = await scheduled(store, task)
  const conflicts = await conflictsOf(store, { taskKey: key }, SHOWN)
  if (label.length === 0 || (schedule === null && conflicts.length === 0)) return null
  const window = schedule && windowLabelled(schedule.schedule, label.join(':'))
  return { about: 'absent', taskKey: key, task, now: await readNow(store), paused: await readPause(store, task), conflicts, window, schedule }
}

async function scheduled(store: Store, name: string): Promise<Scheduled | null> {
  const task = await readTask(store, name)
  const schedule = task && legible(task)
  return schedule && { schedule, launchers: (await listLaunchers(store, name)).slice(0, SHOWN) }
}

/** One that this host cannot read (another version's, or typed by hand) explains nothing. */
function legible(task: Task): Schedule | null {
  try {
    return scheduleOf(task)
  } catch (error) {
    if (isLedgerError(error) && error.code === 'INVALID_OPTION') return null
    throw error
  }
}

/** No zone is further from UTC than this. */
const FARTHEST_ZONE_MS = 16 * 3_600_000

/** The window of a label: its wall clock read as UTC is near enough to look around it. */
function windowLabelled(schedule: Schedule, label: string): Window | null {
  const [, date, clock] = /^(\d{4}-\d\d-\d\d)-(\d\d:\d\d(?::\d\d)?)/.exec(label) ?? []
  const near = Date.parse(`${date}T${clock}Z`)
  if (Number.isNaN(near)) return null
  for (const window of windowsBetween(schedule, new Date(near - FARTHEST_ZONE_MS), new Date(near + FARTHEST_ZONE_MS))) if (window.label === label) return window
  return null
}

function evidenceOf(run: Run): Evidence {
  const process = traceOf(run.processIdentity)
  const leaseEndsAt = new Date(run.heartbeatAt!.getTime() + run.leaseSeconds! * 1000)
  return { verdict: run.leaseOver || process === 'gone' ? 'dead' : 'alive', leaseEndsAt, process }
}

/** Why a run or a task is where it is: who holds it and on what evidence, what stands in its way, what was refused. */
import type { HistoryLine, Run } from '../model/run.ts'
import { readActive, readRun } from '../store/read-run.ts'
import { readNow } from '../store/read-task.ts'
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
}

const SHOWN = 5

/** @returns null when no such run is recorded */
export async function whyRun(store: Store, taskKey: string): Promise<RunReasons | null> {
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

/** @returns null when nothing is recorded of the task */
export async function whyTask(store: Store, task: string): Promise<TaskReasons | null> {
  const processing = (await runsOf(store, task, 'processing', SHOWN)).map((run) => ({ run, evidence: evidenceOf(run) }))
  const pending = await runsOf(store, task, 'pending', SHOWN)
  const [lastCompleted = null] = await runsOf(store, task, 'completed', 1)
  const [lastFailed = null] = await runsOf(store, task, 'failed', 1)
  const paused = await readPause(store, task)
  const conflicts = await conflictsOf(store, { task }, SHOWN)
  const isKnown = processing.length + pending.length + conflicts.length > 0 || lastCompleted !== null || lastFailed !== null || paused !== null
  return isKnown ? { about: 'task', task, now: await readNow(store), paused, processing, pending, lastCompleted, lastFailed, conflicts } : null
}

function evidenceOf(run: Run): Evidence {
  const process = traceOf(run.processIdentity)
  const leaseEndsAt = new Date(run.heartbeatAt!.getTime() + run.leaseSeconds! * 1000)
  return { verdict: run.leaseOver || process === 'gone' ? 'dead' : 'alive', leaseEndsAt, process }
}

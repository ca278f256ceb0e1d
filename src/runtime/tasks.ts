/** Tasks: what the ledger knows of each, learned from launches or set by an operator, and what should have run. */
import { setTimeout as sleep } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import type { Action, ActionName } from '../model/action.ts'
import { durationMs, type Duration } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import type { Measures } from '../model/measures.ts'
import type { MissedWindow } from '../model/missing.ts'
import { checkTaskName, taskKey } from '../model/names.ts'
import type { Instance, Run } from '../model/run.ts'
import { DEFAULT_THRESHOLDS, type Problem, type Thresholds } from '../model/problem.ts'
import { checkTerms, scheduleProblem, scheduleText, type Task, type TaskLauncher, type TaskTerms } from '../model/task.ts'
import { boundText } from '../model/text.ts'
import { windowAt } from '../model/window/window.ts'
import { catchUp, type Gap } from '../store/catch-up.ts'
import { learnTask, type Known } from '../store/learn-task.ts'
import { wasRecorded } from '../store/list-actions.ts'
import { missingWindows, spanOf, type Span } from '../store/missing.ts'
import { reopen } from '../store/operate.ts'
import { listLaunchers, listTasks, readNow } from '../store/read-task.ts'
import { recordAction } from '../store/record-action.ts'
import { setTask } from '../store/set-task.ts'
import type { Store } from '../store/tables.ts'
import { actorOf } from './actor.ts'
import { planBackfill, type BackfillSpan, type BackfillWindow } from './backfill.ts'
import { findProblems } from './check.ts'
import { monotonicMs } from './heart.ts'
import { planLaunch, type Launch } from './launch.ts'
import { measure } from './measure.ts'
import { settle } from './settle.ts'

/** A launch that names another instant than now says nothing of when the task is due. */
const NEAR_NOW_MS = 60_000
/** A long-lived process says the same thing again only this often. */
const SAID_AGAIN_MS = 3_600_000
const QUIET_MS = 1_000
const MOST_SAID = 10_000
const MAX_REASON_BYTES = 1000

export interface MissingFilter {
  /** Only this task. */
  readonly task?: string | undefined
  /** How far back. Default 7 days. */
  readonly since?: Duration | undefined
  /** A run that takes longer is `running_too_long`. Default: twice the longest of the task's last 20, at least a minute. */
  readonly tooLong?: Duration | undefined
  /** Default 10000. */
  readonly limit?: number | undefined
}

export interface Missing {
  /** By task, the oldest first. */
  readonly windows: readonly MissedWindow[]
  /** Whether there are more than the limit. */
  readonly more: boolean
  /** Tasks with more windows in that time than are looked at, and from when on they were. */
  readonly cut: readonly { readonly task: string; readonly from: Date }[]
  /** Tasks whose schedule this host cannot read, such as one in a time zone that it does not know. */
  readonly unreadable: readonly { readonly task: string; readonly problem: string }[]
}

export class Tasks {
  readonly #store: Store
  readonly #patienceMs: number
  readonly #instance: Instance
  /** When this process last said what it launches, by monotonicMs(). */
  readonly #said = new Map<string, number>()
  readonly #mentions = new Set<Promise<unknown>>()

  /** Use ledger.tasks. */
  constructor(store: Store, patienceMs: number, instance: Instance) {
    this.#store = store
    this.#patienceMs = patienceMs
    this.#instance = instance
  }

  /** All that is known of them, in the order of their names; of this one only. */
  async list(task?: string): Promise<Task[]> {
    return this.#read(() => listTasks(this.#store, task))
  }

  /** Who launches them by which schedule; two schedules for one task are usually a mistake. */
  async launchers(task?: string): Promise<TaskLauncher[]> {
    return this.#read(() => listLaunchers(this.#store, task))
  }

  /** Says what a task's terms are; recorded with who, from where and why. @throws INVALID_OPTION */
  async set(task: string, terms: TaskTerms, because?: string): Promise<Task> {
    const checked = checkTerms(terms)
    const action = actionOf('set', checkTaskName(task), null, because, wordsOf(checked))
    return this.#read(() => setTask(this.#store, task, checked, action, actorOf(this.#instance)))
  }

  /**
   * Lets a launch say by which schedule its task runs; `claim` and `run` do it by themselves. One read, and a write only
   * when something is new. It asks once and does not wait for a database: no launch depends on it.
   * @returns the task as it was known before; null when it was not, or the launch has no schedule
   */
  async learn(launch: Launch): Promise<Known | null> {
    const { window, at = new Date() } = launch
    const kept = window && scheduleText(window)
    if (!window || !kept || Math.abs(Date.now() - at.getTime()) > NEAR_NOW_MS) return null
    const news = [launch.task, kept.schedule, kept.zone].join('\0')
    if (monotonicMs() < (this.#said.get(news) ?? -Infinity) + SAID_AGAIN_MS) return null
    const { request, overlap } = planLaunch(launch, this.#instance)
    const { host, launcher } = this.#instance
    const { start: windowStart } = request.window!
    const before = windowAt(window, new Date(windowStart.getTime() - 1))
    const known = await learnTask(this.#store, { task: request.task, ...kept, overlap, host, launcher, windowStart, keyBefore: before && taskKey(request.task, before.label) })
    if (this.#said.size >= MOST_SAID) this.#said.clear()
    this.#said.set(news, monotonicMs())
    return known
  }

  /** Learns beside what the caller does: nobody waits for it, and what goes wrong the next launch says again. */
  mention(launch: Launch): void {
    const mention = this.learn(launch).catch(() => null)
    this.#mentions.add(mention)
    void mention.then(() => this.#mentions.delete(mention))
  }

  /** Resolves when what was mentioned is written, or cannot be soon: for a process that ends right after its claim. */
  async quiet(): Promise<void> {
    if (this.#mentions.size > 0) await Promise.race([Promise.all(this.#mentions), sleep(QUIET_MS, undefined, { ref: false })])
  }

  /**
   * Finds the windows without a run before that of this launch. With catch-up, the latest or all of them within the
   * task's bounds are recorded as pending, for whoever takes up what is due; several launches at once do it once.
   * @returns null when there is no gap, or nobody expects windows of this task
   */
  async catchUp(launch: Launch): Promise<Gap | null> {
    const { request } = planLaunch(launch, this.#instance)
    const { window } = request
    return window && this.#read(() => catchUp(this.#store, { ...request, window }))
  }

  /**
   * The windows that should have run and have no run completed in time, by the schedules that are known. Of a task
   * with very many windows in that time only about the latest 50000 are looked at. @throws INVALID_OPTION
   */
  async missing({ task, since = '7d', tooLong, limit = 10_000 }: MissingFilter = {}): Promise<Missing> {
    const sinceMs = durationMs('since', since)
    const tooLongMs = tooLong === undefined ? null : durationMs('too-long', tooLong)
    const found = await this.list(task)
    const unreadable = unreadableOf(found)
    const tasks = found.filter(({ name }) => !unreadable.some((one) => one.task === name))
    if (task !== undefined && !found[0]?.schedule) throw invalidOption('task', `no schedule of ${JSON.stringify(task.slice(0, 100))} is known; launch it with --cron or --every once, or use 'runledger tasks set'`)
    return this.#read(async () => {
      const now = await readNow(this.#store)
      const spans = tasks.flatMap((one) => ({ task: one, span: spanOf(one, new Date(now.getTime() - sinceMs), now) }))
      const windows: MissedWindow[] = []
      for (const { task: one, span } of spans) {
        if (!span) continue
        for await (const window of missingWindows(this.#store, one, span, tooLongMs)) if (windows.push(window) > limit) return { windows: windows.slice(0, limit), more: true, cut: cutOf(spans), unreadable }
      }
      return { windows, more: false, cut: cutOf(spans), unreadable }
    })
  }

  /** What somebody should look at, the critical first: what `runledger check` prints. Writes nothing. */
  async problems({ task, ...thresholds }: Partial<Thresholds> & { readonly task?: string | undefined } = {}): Promise<Problem[]> {
    return this.#read(() => findProblems(this.#store, { ...DEFAULT_THRESHOLDS, ...thresholds }, task))
  }

  /** The windows of a span, and what filling it would do with each; the oldest first. Writes nothing. @throws INVALID_OPTION */
  async backfill(span: BackfillSpan): Promise<BackfillWindow[]> {
    checkTaskName(span.task)
    return this.#read(() => planBackfill(this.#store, span))
  }

  /** Records that a backfill begins, with its particulars. */
  async recordBackfill(task: string, details: Readonly<Record<string, unknown>>, because?: string): Promise<void> {
    const action = actionOf('backfill', task, null, because, details)
    await settle(this.#store, this.#patienceMs, async (uncertain) => {
      if (uncertain && (await wasRecorded(this.#store, action.id))) return
      await this.#store.statement((db) => recordAction(this.#store, db, action, actorOf(this.#instance)))
    })
  }

  /** Has a failed run done again, with so many more attempts. False when it is not failed, or not after that attempt, any more. */
  async reopen(task: string, run: Pick<Run, 'taskKey' | 'attempt'>, moreAttempts: number, because?: string): Promise<boolean> {
    const action = actionOf('retry', task, run.taskKey, because, { attempt: run.attempt, by: 'backfill' })
    return (await this.#read(() => reopen(this.#store, run, moreAttempts, action, actorOf(this.#instance)))) === 'pending'
  }

  /** Counters and gauges of every task, for a monitoring system; keeps what it has counted in `task_totals`. */
  async measures(): Promise<Measures> {
    return this.#read(() => measure(this.#store))
  }

  #read<T>(query: () => Promise<T>): Promise<T> {
    return settle(this.#store, this.#patienceMs, query)
  }
}

function actionOf(name: ActionName, task: string, taskKey: string | null, because: string | undefined, details: Readonly<Record<string, unknown>>): Action & { readonly id: string } {
  return { id: uuidv7(), name, task, taskKey, because: because === undefined ? null : boundText(because, MAX_REASON_BYTES, 'head'), details: JSON.stringify(details) }
}

function wordsOf({ schedule, ...terms }: TaskTerms): Record<string, unknown> {
  return { ...(schedule === undefined ? {} : { schedule: schedule === null || schedule === 'launched' ? schedule : scheduleText(schedule) }), ...terms }
}

function unreadableOf(tasks: readonly Task[]): Missing['unreadable'] {
  return tasks.flatMap((task) => {
    const problem = scheduleProblem(task)
    return problem === null ? [] : [{ task: task.name, problem }]
  })
}

function cutOf(spans: readonly { readonly task: Task; readonly span: Span | null }[]): Missing['cut'] {
  return spans.flatMap(({ task, span }) => (span?.cut ? [{ task: task.name, from: span.from }] : []))
}

/** Tasks: what the ledger knows of each, learned from launches or set by an operator, and what should have run. */
import { checkTaskName } from '../model/names.ts'
import type { Instance } from '../model/run.ts'
import { checkTerms, scheduleText, type Task, type TaskLauncher, type TaskTerms } from '../model/task.ts'
import { boundText } from '../model/text.ts'
import { learnTask } from '../store/learn-task.ts'
import { listLaunchers, listTasks } from '../store/read-task.ts'
import { setTask } from '../store/set-task.ts'
import type { Store } from '../store/tables.ts'
import { actorOf } from './actor.ts'
import { monotonicMs } from './heart.ts'
import { planLaunch, type Launch } from './launch.ts'
import { settle } from './settle.ts'

/** A launch that names another instant than now says nothing of when the task is due. */
const NEAR_NOW_MS = 60_000
/** A long-lived process says the same thing again only this often. */
const SAID_AGAIN_MS = 3_600_000
const MOST_SAID = 10_000
const MAX_REASON_BYTES = 1000

export class Tasks {
  readonly #store: Store
  readonly #patienceMs: number
  readonly #instance: Instance
  /** When this process last said what it launches, by monotonicMs(). */
  readonly #said = new Map<string, number>()

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
    const action = { name: 'set', task: checkTaskName(task), taskKey: null, because: because === undefined ? null : boundText(because, MAX_REASON_BYTES, 'head'), details: JSON.stringify(wordsOf(checked)) } as const
    return this.#read(() => setTask(this.#store, task, checked, action, actorOf(this.#instance)))
  }

  /**
   * Lets a launch say by which schedule its task runs; `claim` and `run` do it by themselves. One read, and a write only
   * when something is new. It asks once and does not wait for a database: no launch depends on it.
   * @returns the task as it was known before; null when it was not, or the launch has no schedule
   */
  async learn(launch: Launch): Promise<Task | null> {
    const { window, at = new Date() } = launch
    const kept = window && scheduleText(window)
    if (!kept || Math.abs(Date.now() - at.getTime()) > NEAR_NOW_MS) return null
    const news = [launch.task, kept.schedule, kept.zone].join('\0')
    if (monotonicMs() < (this.#said.get(news) ?? -Infinity) + SAID_AGAIN_MS) return null
    const { request, overlap } = planLaunch(launch, this.#instance)
    const { host, launcher } = this.#instance
    const known = await learnTask(this.#store, { task: request.task, ...kept, overlap, host, launcher, windowStart: request.window!.start })
    if (this.#said.size >= MOST_SAID) this.#said.clear()
    this.#said.set(news, monotonicMs())
    return known
  }

  #read<T>(query: () => Promise<T>): Promise<T> {
    return settle(this.#store, this.#patienceMs, query)
  }
}

function wordsOf({ schedule, ...terms }: TaskTerms): Record<string, unknown> {
  return { ...(schedule === undefined ? {} : { schedule: schedule === null || schedule === 'launched' ? schedule : scheduleText(schedule) }), ...terms }
}

/** What a person may do to runs and tasks: cancel, retry, release a dead holder, pause. Each leaves a line with who, from where and why. */
import { v7 as uuidv7 } from 'uuid'
import type { Action, ActionName, Actor, RecordedAction } from '../model/action.ts'
import { invalidOption, LedgerError } from '../model/errors.ts'
import { checkTaskName } from '../model/names.ts'
import type { Instance, Run } from '../model/run.ts'
import { boundText } from '../model/text.ts'
import { listActions, wasRecorded, type ActionFilter } from '../store/list-actions.ts'
import { cancelPending, redo, releaseDead, reopen, requestCancel, type Operated } from '../store/operate.ts'
import { setPaused } from '../store/pause.ts'
import { readRun } from '../store/read-run.ts'
import type { Store } from '../store/tables.ts'
import { isDead } from './acquire.ts'
import { actorOf } from './actor.ts'
import { settle } from './settle.ts'
import { why, type AbsentReasons, type RunReasons, type TaskReasons } from './why.ts'

export interface ActionOptions {
  /** Who acts; by default the user of this process. */
  readonly by?: string | undefined
  /** Why; it stands in the record, and for a pause in what `why` says. */
  readonly because?: string | undefined
}

/**
 * What became of the run: `cancelled` at once, `requested` of its holder, `reopened`, `released`; or `refused`, with the
 * reason, and nothing was changed or recorded.
 */
export type Operation =
  | { readonly status: 'cancelled' | 'requested' | 'reopened' | 'released'; readonly run: Run }
  | { readonly status: 'refused'; readonly problem: string; readonly run: Run }

/** Each look ends in an answer unless somebody else moves the run under us; this many surprises are a bug. */
const MAX_LOOKS = 50

const MAX_REASON_BYTES = 1024

export class Operator {
  readonly #store: Store
  readonly #patienceMs: number
  readonly #instance: Instance

  /** Use ledger.operator. */
  constructor(store: Store, patienceMs: number, instance: Instance) {
    this.#store = store
    this.#patienceMs = patienceMs
    this.#instance = instance
  }

  /**
   * Ends a pending run as cancelled at once. Of one that is processing the holder's next heartbeat sees it, and stops the
   * work; then it ends as cancelled, without another attempt. One whose holder is gone is cancelled at once.
   * @throws RUN_NOT_FOUND, DATABASE_UNAVAILABLE
   */
  async cancel(taskKey: string, options: ActionOptions = {}): Promise<Operation> {
    return this.#operate('cancel', taskKey, options, async (run, action, by) => {
      if (run.status === 'pending') return cancelPending(this.#store, run, action, by)
      if (run.status === 'processing') return requestCancel(this.#store, run, isGone(run), action, by)
      return { problem: `it is ${run.status} already` }
    })
  }

  /**
   * Makes a failed run pending again, with `attempts` more (one by default); with `force` also one that is completed. The
   * next launch of the task runs it. Effects that were done stay done.
   * @throws RUN_NOT_FOUND, INVALID_OPTION, DATABASE_UNAVAILABLE
   */
  async retry(taskKey: string, { force = false, attempts = 1, ...options }: ActionOptions & { force?: boolean; attempts?: number } = {}): Promise<Operation> {
    if (!Number.isInteger(attempts) || attempts < 1 || attempts > 1000) throw invalidOption('attempts', `must be a whole number from 1 to 1000, got ${String(attempts)}`)
    return this.#operate('retry', taskKey, options, async (run, action, by) => {
      if (run.status === 'pending') return { problem: 'it is pending already' }
      if (run.status === 'processing') return { problem: isGone(run) ? 'its holder is gone; release it, or let the next launch take it over' : `it is being run by ${run.host} pid ${run.pid}` }
      if (run.status === 'completed' && !force) return { problem: 'it is completed; only force has it done again' }
      const again = run.status === 'completed' ? redo : reopen
      return (await again(this.#store, run, attempts, action, by)) === 'moved' ? 'moved' : 'reopened'
    })
  }

  /**
   * Closes the attempt of a holder that is gone. Where its lease still runs and this host cannot prove its death, that is
   * the operator's word, and takes `force`; should it live after all, its writes are refused and it is told so.
   * @throws RUN_NOT_FOUND, DATABASE_UNAVAILABLE
   */
  async release(taskKey: string, { force = false, ...options }: ActionOptions & { force?: boolean } = {}): Promise<Operation> {
    return this.#operate('release', taskKey, options, async (run, action, by) => {
      if (run.status !== 'processing') return { problem: `nobody holds it: it is ${run.status}` }
      if (!force && !isGone(run)) return { problem: `${run.host} pid ${run.pid} renewed its lease at ${run.heartbeatAt?.toISOString()} and may live; if you know that it does not, force` }
      return (await releaseDead(this.#store, run, action, by)) === 'moved' ? 'moved' : 'released'
    })
  }

  /** Lets no run of the task begin on any host; one that is processing goes on. @returns false when it was paused already */
  async pause(task: string, options: ActionOptions = {}): Promise<boolean> {
    return this.#setPaused('pause', task, options)
  }

  /** @returns false when it was not paused */
  async resume(task: string, options: ActionOptions = {}): Promise<boolean> {
    return this.#setPaused('resume', task, options)
  }

  /**
   * Why a run (by its key) or a task is where it is: who holds it, on what evidence that counts as alive or dead, what
   * stands in its way, what was refused. Changes nothing. @throws RUN_NOT_FOUND
   */
  async why(subject: string): Promise<RunReasons | TaskReasons | AbsentReasons> {
    const reasons = await settle(this.#store, this.#patienceMs, () => why(this.#store, subject))
    if (!reasons) throw new LedgerError('RUN_NOT_FOUND', `no run and no task ${JSON.stringify(subject)} is recorded`, { taskKey: subject })
    return reasons
  }

  /** What was done, the newest last. */
  async actions(filter: Partial<ActionFilter> = {}): Promise<RecordedAction[]> {
    return settle(this.#store, this.#patienceMs, () => listActions(this.#store, { limit: 50, ...filter }))
  }

  async #setPaused(name: 'pause' | 'resume', task: string, options: ActionOptions): Promise<boolean> {
    const action = actionOf(name, checkTaskName(task), null, options)
    return settle(this.#store, this.#patienceMs, async (uncertain) => {
      if (uncertain && (await wasRecorded(this.#store, action.id))) return true
      return setPaused(this.#store, task, name === 'pause', action, this.#actor(options))
    })
  }

  /** Looks at the run and acts on what was seen, until nobody moves it in between. */
  async #operate(name: Verb, taskKey: string, options: ActionOptions, act: Act): Promise<Operation> {
    const store = this.#store
    const by = this.#actor(options)
    const id = uuidv7()
    for (let look = 0; look < MAX_LOOKS; look++) {
      const { run, did } = await settle(store, this.#patienceMs, async (uncertain) => {
        const seen = await this.#read(taskKey)
        if (uncertain && (await wasRecorded(store, id))) return { run: seen, did: doneAs(name, seen) }
        return { run: seen, did: await act(seen, { ...actionOf(name, seen.task, taskKey, options), id }, by) }
      })
      if (typeof did === 'object') return { status: 'refused', problem: `${taskKey}: ${did.problem}`, run }
      if (did !== 'moved') return { status: did, run: await settle(store, this.#patienceMs, () => this.#read(taskKey)) }
    }
    throw new LedgerError('INTERNAL', `${name} of ${taskKey} met a different row in each of ${MAX_LOOKS} looks`, { taskKey })
  }

  async #read(taskKey: string): Promise<Run> {
    const run = await readRun(this.#store, taskKey)
    if (!run) throw new LedgerError('RUN_NOT_FOUND', `no run ${JSON.stringify(taskKey)} is recorded`, { taskKey })
    return run
  }

  #actor({ by }: ActionOptions): Actor {
    return actorOf(this.#instance, by)
  }
}

type Verb = 'cancel' | 'retry' | 'release'
type Done = Exclude<Operation['status'], 'refused'>
type Act = (run: Run, action: Action, by: Actor) => Promise<Operated<Done> | { readonly problem: string }>

/** After an unknown commit that turned out to have been reached. */
function doneAs(name: Verb, run: Run): Done {
  if (name === 'retry') return 'reopened'
  if (name === 'release') return 'released'
  return run.status === 'failed' ? 'cancelled' : 'requested'
}

function isGone(run: Run): boolean {
  return run.leaseOver || isDead(run)
}

function actionOf(name: ActionName, task: string, taskKey: string | null, { because }: ActionOptions) {
  return { id: uuidv7(), name, task, taskKey, because: because === undefined || because === '' ? null : boundText(because, MAX_REASON_BYTES, 'head') }
}

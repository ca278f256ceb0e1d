/** The story of a backfill: window after window, so many at once, until all are done or somebody wants it to end. */
import type { BackfillSpan, BackfillWindow, Claim, Conflict } from '../../index.ts'
import { DEFAULT_MAX_ATTEMPTS } from '../../model/retry.ts'
import type { Io } from '../command.ts'
import { EXIT } from '../exit.ts'
import { conflictLine, inScene, pause, runClaim, type ExecPlan, type Scene } from '../exec/launches.ts'
import { logLine } from '../exec/log-line.ts'

export interface FillPlan extends ExecPlan {
  readonly span: BackfillSpan
  readonly parallel: number
  readonly newestFirst: boolean
  readonly because: string | undefined
}

/** How often a run in the way is looked at. */
const LOOK_MS = 1000

interface Tally {
  begun: number
  completed: number
  failed: number
  interrupted: number
  /** Found done, running or barred when their turn came. */
  left: number
  /** Of the first job that failed, or why nothing more is to be started. */
  exitCode: number
  isOver: boolean
}

export function fill(plan: FillPlan, io: Io): Promise<number> {
  return inScene(plan, io, async (scene) => {
    const { ledger, log, stop } = scene
    await ledger.due(plan.span.task, 1) // Closes attempts of the task whose owner is gone, those of a killed backfill among them.
    const planned = await ledger.tasks.backfill(plan.span)
    const wanted = planned.filter(({ action }) => action !== 'leave')
    if (plan.newestFirst) wanted.reverse()
    if (wanted.length > 0) await ledger.tasks.recordBackfill(plan.span.task, particulars(plan, wanted.length), plan.because)
    const tally: Tally = { begun: 0, completed: 0, failed: 0, interrupted: 0, left: 0, exitCode: 0, isOver: false }
    const queue = wanted.values()
    // Nothing may still be at work when the ledger is closed.
    const workers = await Promise.allSettled(Array.from({ length: plan.parallel }, () => work(scene, plan, queue, tally)))
    const { completed, failed, interrupted } = tally
    log(logLine(ledger.instance, { task: plan.span.task, status: 'backfill_done', completed, failed, interrupted, left: planned.length - wanted.length + tally.left, not_begun: wanted.length - tally.begun - tally.left }))
    const broken = workers.find((worker) => worker.status === 'rejected')
    if (broken) throw broken.reason
    return stop.requested ? stop.exitCode : tally.exitCode
  })
}

/** An error of one worker lets the others finish what they are at, and start nothing more. */
async function work(scene: Scene, plan: FillPlan, queue: Iterator<BackfillWindow>, tally: Tally): Promise<void> {
  try {
    while (!scene.stop.requested && !tally.isOver) {
      const { value: window, done } = queue.next()
      if (done) return
      await fillOne(scene, plan, window, tally)
    }
  } catch (error) {
    tally.isOver = true
    throw error
  }
}

async function fillOne(scene: Scene, { because }: FillPlan, window: BackfillWindow, tally: Tally): Promise<void> {
  const { ledger, launch, log, stop } = scene
  const attempts = launch.maxAttempts ?? DEFAULT_MAX_ATTEMPTS
  if (window.action === 'reopen') await ledger.tasks.reopen(window.task, { taskKey: window.taskKey, attempt: window.run!.attempt }, attempts, because)
  const claim = await claimInTurn(scene, window)
  if (claim === null) return
  if (claim.status === 'conflict') {
    tally.left += 1
    log(conflictLine(scene, claim))
    if (claim.reason === 'paused') giveUp(tally, EXIT.conflict)
    return
  }
  tally.begun += 1
  const exitCode = await runClaim(scene, claim)
  if (exitCode === 0) tally.completed += 1
  else if (stop.requested) {
    tally.interrupted += 1
    // It was us who ended it, and who lets the backfill go on later wants this window too.
    await ledger.tasks.reopen(window.task, claim, attempts, 'the backfill was interrupted')
  } else if (exitCode === EXIT.leaseLost && claim.signal.aborted) giveUp(tally, exitCode) // Not a job's own 75: the database is gone, or others have the run.
  else {
    tally.failed += 1
    tally.exitCode ||= exitCode
  }
}

/** Waits while another run of the task is at work. Null when we were told to stop meanwhile. */
async function claimInTurn(scene: Scene, window: BackfillWindow): Promise<Claim | Conflict | null> {
  const { ledger, launch, log, stop } = scene
  for (let told = false; !stop.requested; told = true) {
    const outcome = await ledger.takeUp(window, launch)
    if (outcome.status === 'claimed' || outcome.reason !== 'overlap') return outcome
    if (!told) log({ ...conflictLine(scene, outcome), status: 'waiting' })
    await pause(LOOK_MS * (0.5 + Math.random()), stop.signal)
  }
  return null
}

function giveUp(tally: Tally, exitCode: number): void {
  tally.isOver = true
  tally.exitCode ||= exitCode
}

function particulars({ span: { from, to, only, schedule }, parallel, newestFirst }: FillPlan, windows: number) {
  return { from, to, only: only ?? 'missing', windows, parallel, newest_first: newestFirst, ...(schedule && { schedule: schedule.source, zone: schedule.zone }) }
}

/** One attempt: the claim's lease kept, the child run, and its end recorded. */
import { isLedgerError, type Claim, type Ledger, type LedgerError } from '../../index.ts'
import { boundText } from '../../model/text.ts'
import type { Io } from '../command.ts'
import { EXIT } from '../exit.ts'
import type { Log } from '../log.ts'
import { startChild, type Child, type ChildEnd } from './child.ts'
import { logLine } from './log-line.ts'
import { exitCodeOf } from './signals.ts'
import type { Stop } from './stop.ts'
import type { Watchdog } from './watchdog.ts'

export interface Job {
  readonly path: string
  readonly argv0: string
  readonly args: readonly string[]
  /** All of its stdin; without it, ours. */
  readonly stdin?: string
}

export interface AttemptScene {
  readonly io: Io
  readonly ledger: Pick<Ledger, 'instance'>
  readonly log: Log
  readonly job: Job
  readonly stop: Stop
  readonly timeoutMs: number | null
  readonly graceMs: number
  /** A job that we had to end because we must stop is given back, the attempt not counted; without it, it has failed. */
  readonly givesBack?: boolean
  nextWatchdog(): Promise<Watchdog>
}

export interface AttemptEnd {
  readonly exitCode: number
  /** When to try again; null when there is no further attempt, or none for this process. */
  readonly retryInMs: number | null
}

/** The last bytes of the job's output that are kept. */
const TAIL_BYTES = 16 * 1024

/**
 * A lease that is not renewed is given up at three quarters of it (runtime/heart.ts). SIGKILL comes within this part of
 * it after that, and from a watchdog whose wrapper cannot act, within GRACE_PART_OF_LEASE after WATCHDOG_PART_OF_LEASE.
 */
export const GRACE_PART_OF_LEASE = 0.1
const WATCHDOG_PART_OF_LEASE = 0.8

/** Why the child was told to end before it did by itself. */
type Cut = 'timeout' | 'lease' | 'cancel' | null

export async function runAttempt(claim: Claim, scene: AttemptScene): Promise<AttemptEnd> {
  const { ledger, log, stop } = scene
  const tell = (fields: Parameters<Log>[0]) => log(logLine(ledger.instance, { task: claim.task, key: claim.taskKey, attempt: claim.attempt, fence: claim.fence, ...fields }))
  if (stop.requested) {
    await claim.release()
    tell({ status: 'released', reason: 'told to stop before the job began' })
    return { exitCode: stop.exitCode, retryInMs: null }
  }
  const watchdog = await scene.nextWatchdog()
  if (watchdog.problem !== null) tell({ status: 'unwatched', reason: watchdog.problem })
  keepWatchdogInformed(claim, watchdog)
  const child = await startChild({ ...scene.job, env: childEnvironment(claim, scene.io.env), instanceId: claim.instanceId, tailBytes: TAIL_BYTES, graceMs: scene.graceMs, watchdog })
  if ('problem' in child) return recordFailure(claim, tell, child.exitCode, 'exit', { error: child.problem })
  tell({ status: 'started' })
  const { end, cut } = await supervise(claim, child, scene)
  const news: Parameters<Log>[0][] = []
  try {
    return await record(claim, scene, (fields) => news.push(fields), end, cut)
  } catch (error) {
    if (!isLedgerError(error) || error.code !== 'LEASE_LOST') throw error
    news.push({ status: 'lease_lost', reason: error.message })
    return { exitCode: EXIT.leaseLost, retryInMs: null }
  } finally {
    // Recorded first, for a reader may be slow, and who is told to stop meanwhile just ends. Told last, lest a line of ours
    // stands in the middle of one of the job's.
    const standUp = stop.standDown()
    const lostOutput = await child.flushed()
    standUp()
    for (const fields of news) tell(fields)
    if (lostOutput) tell({ status: 'output_lost', error: lostOutput.message })
  }
}

function childEnvironment(claim: Claim, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { window } = claim
  const child: NodeJS.ProcessEnv = {
    ...env,
    RUNLEDGER_TASK: claim.task,
    RUNLEDGER_TASK_KEY: claim.taskKey,
    RUNLEDGER_ATTEMPT: String(claim.attempt),
    RUNLEDGER_FENCE: String(claim.fence),
    RUNLEDGER_IDEMPOTENCY_KEY: claim.taskKey, // The same on every attempt: that is what makes it one.
  }
  if (claim.traceparent !== null) child['TRACEPARENT'] = claim.traceparent
  // A job started by another job must not take the outer one's claim or window for its own.
  delete child['RUNLEDGER_CLAIM']
  delete child['RUNLEDGER_WINDOW_START']
  delete child['RUNLEDGER_WINDOW_END']
  return window ? { ...child, RUNLEDGER_WINDOW_START: window.start.toISOString(), RUNLEDGER_WINDOW_END: window.end.toISOString() } : child
}

/** If we freeze (SIGSTOP, a paused container), the watchdog still knows when the job has to be over: before its lease is. */
function keepWatchdogInformed(claim: Claim, watchdog: Watchdog): void {
  const safeMs = claim.leaseMs * WATCHDOG_PART_OF_LEASE
  watchdog.lease(safeMs)
  claim.onRenewed(() => watchdog.lease(safeMs))
}

/** Waits for the child, and ends it when its time or its lease is over. */
async function supervise(claim: Claim, child: Child, scene: AttemptScene): Promise<{ end: ChildEnd; cut: Cut }> {
  let cut: Cut = null
  let graceMs = scene.graceMs
  const endEarly = (why: NonNullable<Cut>) => {
    cut ??= why
    void child.terminate('SIGTERM', graceMs)
  }
  const onAbort = () => {
    if ((claim.signal.reason as LedgerError).code === 'RUN_CANCELLED') return endEarly('cancel')
    graceMs = Math.min(graceMs, claim.leaseMs * GRACE_PART_OF_LEASE) // When the lease is over, somebody else may begin.
    endEarly('lease')
  }
  claim.signal.addEventListener('abort', onAbort)
  if (claim.signal.aborted) onAbort()
  const stopTimer = scene.timeoutMs === null ? () => {} : startTimer(scene.timeoutMs, () => endEarly('timeout'))
  const unguide = scene.stop.guide(child)
  try {
    const end = await child.ended
    if (cut !== null || scene.stop.requested) await child.terminate('SIGTERM', graceMs) // Nobody of the group may outlive its run.
    return { end, cut }
  } finally {
    unguide()
    stopTimer()
    claim.signal.removeEventListener('abort', onAbort)
  }
}

/** A timer of any length: Node's own fires at once beyond 2^31 - 1 ms. */
function startTimer(ms: number, then: () => void): () => void {
  const due = performance.now() + ms
  let timer: NodeJS.Timeout
  const wait = () => {
    const left = due - performance.now()
    if (left <= 0) then()
    else timer = setTimeout(wait, Math.min(left, 86_400_000))
  }
  wait()
  return () => clearTimeout(timer)
}

type Tell = (fields: Parameters<Log>[0]) => unknown

async function record(claim: Claim, { stop, givesBack }: AttemptScene, tell: Tell, end: ChildEnd, cut: Cut): Promise<AttemptEnd> {
  const exitCode = exitCodeOf(end)
  const outputTail = boundText(end.outputTail, TAIL_BYTES, 'tail', end.unkeptBytes)
  if (cut === 'lease') throw claim.signal.reason
  if (cut === 'cancel') return recordFailure(claim, tell, exitCode, 'cancelled', { error: 'an operator cancelled the run', outputTail })
  if (cut === 'timeout') return recordFailure(claim, tell, EXIT.timeout, 'timeout', { error: 'the job ran into --timeout', outputTail })
  if (givesBack && stop.by !== null && exitCode !== 0) {
    await claim.release({ error: `the job was ended, for the worker was told to stop by ${stop.by}`, exitCode, outputTail })
    tell({ status: 'released', exit_code: exitCode })
    return { exitCode, retryInMs: null }
  }
  if (end.signal !== null) {
    const told = stop.by === null ? '' : ` after runledger was told to stop by ${stop.by}`
    return recordFailure(claim, tell, exitCode, 'signal', { error: `the job died of ${end.signal}${told}`, outputTail })
  }
  if (exitCode !== 0) return recordFailure(claim, tell, exitCode, 'exit', { error: `the job exited with ${exitCode}`, outputTail })
  await claim.complete({ exitCode, outputTail })
  tell({ status: 'completed', exit_code: exitCode })
  return { exitCode, retryInMs: null }
}

async function recordFailure(claim: Claim, tell: Tell, exitCode: number, reason: 'exit' | 'signal' | 'timeout' | 'cancelled', ending: { error: string; outputTail?: string }): Promise<AttemptEnd> {
  const { retryInMs, cancelled } = await claim.fail(ending.error, { reason, exitCode, ...ending })
  tell({ status: 'failed', reason: cancelled ? 'cancelled' : reason, exit_code: exitCode, retry_in: retryInMs === null ? null : `${Math.round(retryInMs) / 1000}s` })
  return { exitCode, retryInMs }
}

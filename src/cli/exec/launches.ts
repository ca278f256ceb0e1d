/** The story of one `exec`: take up what is due, run the own window, and what was queued meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import { checkLaunch, isLedgerError, openLedger, type Claim, type Conflict, type Launch, type Ledger, type RunRef } from '../../index.ts'
import { leaseTerms } from '../../model/lease.ts'
import type { FlagValues, Io } from '../command.ts'
import { connectTimeout, databaseUrl, tracing } from '../database.ts'
import { EXIT } from '../exit.ts'
import type { Log } from '../log.ts'
import { GRACE_PART_OF_LEASE, runAttempt, type AttemptEnd, type Job } from './attempt.ts'
import { logLine } from './log-line.ts'
import { listenForStop, type Stop } from './stop.ts'
import { startWatchdog, type Watchdog } from './watchdog.ts'

export interface ExecPlan {
  readonly flags: FlagValues
  readonly log: Log
  readonly launch: Launch
  readonly job: Job
  readonly timeoutMs: number | null
  readonly graceMs: number
  readonly conflictExitCode: number
  readonly onlyOwn: boolean
}

/** What every step needs. */
export interface Scene extends ExecPlan {
  readonly io: Io
  /** Null for a manual run. */
  readonly ownKey: string | null
  readonly ledger: Ledger
  readonly stop: Stop
  /** A watchdog serves one child; the first was started while the database was being opened. */
  nextWatchdog(): Promise<Watchdog>
}

/** @returns the exit code: the own window's, or the first of the others that is not zero */
export function execAll(plan: ExecPlan, io: Io): Promise<number> {
  return inScene(plan, io, tellStory)
}

/** Opens the ledger, with signals heard and a watchdog at hand, plays the story, and clears up whatever happens. */
export async function inScene(plan: ExecPlan, io: Io, story: (scene: Scene) => Promise<number>): Promise<number> {
  const { taskKey: ownKey } = checkLaunch(plan.launch) // Before anything is opened: a usage error must not depend on the database.
  const stop = listenForStop()
  const instanceId = uuidv7()
  const { leaseMs } = leaseTerms(plan.launch.lease, plan.launch.heartbeat)
  const watch = () => startWatchdog({ instanceId, graceMs: Math.min(plan.graceMs, leaseMs * GRACE_PART_OF_LEASE) })
  const first = watch()
  try {
    const helpers = first.then(({ pid }) => (pid === null ? [] : [pid]))
    const ledger = await openLedger(databaseUrl(plan.flags, io.env), { connectTimeout: connectTimeout(plan.flags), heartbeats: 'loop', instanceId, helpers, ...tracing(io.env), onHeartbeatError: (error) => plan.log({ task: plan.launch.task, instance: instanceId, status: 'heartbeat_missed', error: error instanceof Error ? error.message : String(error) }) })
    let spare: Watchdog | null = await first
    const nextWatchdog = async () => {
      const watchdog = spare ?? (await watch())
      spare = null
      return watchdog
    }
    try {
      return await story({ ...plan, io, ownKey, ledger, stop, nextWatchdog })
    } finally {
      await ledger.close()
    }
  } finally {
    await (await first).dismiss()
    stop.standDown()
  }
}

async function tellStory(scene: Scene): Promise<number> {
  const { onlyOwn, stop } = scene
  await lookBack(scene)
  const before = onlyOwn ? [] : await runDue(scene)
  if (stop.requested) return stop.exitCode
  const own = before.find(({ isOwn }) => isOwn)?.exitCode ?? (await runOwn(scene))
  if (own === EXIT.leaseLost) return own // The database is gone, or others do the task's work by now.
  const after = onlyOwn || stop.requested ? [] : ((await ifReachable(scene, () => runDue(scene))) ?? [])
  return own !== 0 ? own : ([...before, ...after].find(({ exitCode }) => exitCode !== 0)?.exitCode ?? own)
}

/** Tells the ledger what this launch is, and finds the gap before it. Neither is a reason not to run. */
async function lookBack({ ledger, launch, onlyOwn, log }: Scene): Promise<void> {
  try {
    const known = await ledger.tasks.learn(launch)
    const mayLack = known !== null && !onlyOwn && (!known.ranBefore || known.task.catchUp !== 'none')
    const gap = mayLack ? await ledger.tasks.catchUp(launch) : null
    if (gap) log(logLine(ledger.instance, { task: launch.task, status: 'gap', missed: gap.missed, queued: gap.queued.length, since: gap.since, catch_up: known!.task.catchUp }))
  } catch (error) {
    log(logLine(ledger.instance, { task: launch.task, status: 'gap_unknown', error: error instanceof Error ? error.message : String(error) }))
  }
}

interface DueEnd {
  readonly exitCode: number
  /** It was the run that this launch was started for, pending since a crash or a failure. */
  readonly isOwn: boolean
}

/** Runs what is pending and due, one after the other, until nothing is left or somebody else works on the task. */
async function runDue(scene: Scene): Promise<DueEnd[]> {
  const { ledger, launch, ownKey, stop } = scene
  const ends: DueEnd[] = []
  const tried = new Set<string>()
  while (!stop.requested) {
    const next = (await ledger.due(launch.task)).find(({ taskKey }) => !tried.has(taskKey))
    if (!next) break
    tried.add(next.taskKey)
    const claim = await ledger.takeUp(next, launch)
    if (claim.status === 'conflict' && claim.reason === 'overlap') break
    if (claim.status === 'claimed') ends.push({ exitCode: await runClaim(scene, claim), isOwn: next.taskKey === ownKey })
  }
  return ends
}

async function runOwn(scene: Scene): Promise<number> {
  const { ledger, launch, log, stop, conflictExitCode } = scene
  const outcome = await ledger.claim({ ...launch, signal: stop.signal })
  if (outcome.status === 'claimed') return runClaim(scene, outcome)
  if (outcome.status === 'queued') {
    log(logLine(ledger.instance, { task: launch.task, key: outcome.taskKey, status: 'queued' }))
    return EXIT.ok
  }
  log(conflictLine(scene, outcome))
  return stop.requested ? stop.exitCode : conflictExitCode
}

/** One run until it is over for this process: its attempts, with the backoff between them. */
export async function runClaim(scene: Scene, claimed: Claim): Promise<number> {
  const { ledger, launch, stop, log } = scene
  for (let claim = claimed; ; ) {
    const end: AttemptEnd = await runAttempt(claim, scene)
    if (end.retryInMs === null || stop.requested) return end.exitCode
    await pause(end.retryInMs, stop.signal) // Told to stop: the run stays pending.
    if (stop.requested) return end.exitCode
    const next = await ifReachable(scene, () => ledger.takeUp(refOf(claim), launch))
    if (next === null) return end.exitCode
    if (next.status === 'conflict') {
      log(conflictLine(scene, next))
      return end.exitCode
    }
    claim = next
  }
}

/** For what is left when a job has run: a database that is gone by then must not look as if it had not run (exit code 69). */
export async function ifReachable<T>({ ledger, launch, log }: Scene, work: () => Promise<T>): Promise<T | null> {
  try {
    return await work()
  } catch (error) {
    if (!isLedgerError(error) || error.code !== 'DATABASE_UNAVAILABLE') throw error
    log(logLine(ledger.instance, { task: launch.task, status: 'unavailable', error: error.message }))
    return null
  }
}

/** However long: Node's own timers fire at once beyond 2^31 - 1 ms. */
export async function pause(ms: number, until: AbortSignal): Promise<void> {
  for (const due = performance.now() + ms; !until.aborted && performance.now() < due; ) {
    await sleep(Math.min(due - performance.now(), 86_400_000), undefined, { signal: until }).catch(() => {}) // Only an abort rejects.
  }
}

function refOf({ taskKey, task, window }: Claim): RunRef {
  return { taskKey, task, windowStart: window?.start ?? null, windowEnd: window?.end ?? null, windowZone: window?.zone ?? null }
}

export function conflictLine({ ledger, launch }: Scene, { taskKey, reason, holder, dueAt }: Conflict) {
  return logLine(ledger.instance, {
    task: launch.task,
    key: taskKey,
    status: 'conflict',
    reason,
    due: dueAt,
    held_by_key: holder && holder.taskKey !== taskKey ? holder.taskKey : null,
    held_by_host: holder?.host,
    held_by_pid: holder?.pid,
    held_by_instance: holder?.instanceId,
    held_since: holder?.since,
  })
}

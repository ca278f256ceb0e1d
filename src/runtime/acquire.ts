/** From a launch to its outcome: claim, and where that is refused skip, wait or queue, as the policy says. */
import { setTimeout as sleep } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import type { Conflict } from '../model/outcome.ts'
import { claim, type Claimed } from '../store/claim.ts'
import { recordConflict } from '../store/conflict.ts'
import type { DeathCheck } from '../store/lost.ts'
import { queueRun } from '../store/queue-run.ts'
import { readActive, readRun } from '../store/read-run.ts'
import type { Store } from '../store/tables.ts'
import { monotonicMs } from './heart.ts'
import { hold, isHeld } from './held.ts'
import type { PlannedLaunch } from './launch.ts'
import type { Told } from './observer.ts'
import { isProvablyGone } from './process-identity.ts'
import { settle } from './settle.ts'

/** The window was recorded as pending: the holder runs it before it ends, or the next launch does. */
export interface Queued {
  readonly status: 'queued'
  readonly taskKey: string
}

export interface Acquired {
  readonly claimed: Claimed
  /** When the successful claim was sent, by monotonicMs(). */
  readonly claimedAt: number
}

const FIRST_POLL_MS = 50
const LONGEST_POLL_MS = 1_000

export const isDead: DeathCheck = (run) => isProvablyGone(run.processIdentity)

/**
 * @param patienceMs how long a database that does not answer is asked again
 * @throws DATABASE_UNAVAILABLE; then nothing may be started, whatever the database did with the request
 */
export async function acquire(store: Store, plan: PlannedLaunch, patienceMs: number): Promise<Acquired | Conflict | Queued> {
  const { overlap } = plan
  let outcome = await tryClaim(store, plan, patienceMs)
  if (overlap === 'wait' && isBlocked(outcome)) outcome = await waitForTurn(store, plan, patienceMs, outcome)
  if (overlap === 'queue' && 'reason' in outcome && outcome.reason === 'overlap') return queue(store, plan, patienceMs)
  if ('reason' in outcome && !plan.request.isKnown) await record(store, plan, patienceMs, outcome)
  return outcome
}

/** What an observer is told of the outcome. */
export function acquiredTold(outcome: Acquired | Conflict | Queued): Told {
  if ('claimed' in outcome) return { event: 'claim', facts: { attempt: outcome.claimed.attempt, fence: outcome.claimed.fence } }
  if (outcome.status === 'queued') return { event: 'queued' }
  const { reason, holder } = outcome
  return { event: 'conflict', facts: { reason, heldByKey: holder?.taskKey, heldByHost: holder?.host, heldByPid: holder?.pid, heldByInstance: holder?.instanceId } }
}

/**
 * A claim whose answer was lost is asked for again, and recognised as ours by its instance, unless another launch has it.
 * It may be carried out as late as between our look and the next try, which then finds the key held: by us.
 */
async function tryClaim(store: Store, plan: PlannedLaunch, patienceMs: number): Promise<Acquired | Conflict> {
  const { request } = plan
  let claimedAt = monotonicMs()
  const outcome = await settle(store, patienceMs, async (uncertain) => {
    const [sentBefore, askedAt] = [claimedAt, monotonicMs()]
    const unseen = uncertain ? await unseenClaim(store, request) : null
    if (unseen) return unseen
    claimedAt = askedAt // An earlier claim that was not there yet may be carried out from now on.
    const answer = await claim(store, request, isDead)
    const isLate = uncertain && answer.status === 'conflict' && answer.holder?.instanceId === request.instance.id
    const late = isLate ? await unseenClaim(store, request) : null
    if (late) claimedAt = sentBefore // A look at another node may be older than the claim.
    return late ?? answer
  })
  if (outcome.status !== 'claimed') return outcome
  return hold(outcome) ? { claimed: outcome, claimedAt } : tryClaim(store, plan, patienceMs)
}

/** A claim of ours that nobody in this process knows of yet. */
async function unseenClaim(store: Store, { taskKey, instance }: PlannedLaunch['request']): Promise<Claimed | null> {
  const run = await readRun(store, taskKey)
  const found = run?.status === 'processing' && run.instanceId === instance.id && !run.leaseOver ? claimedOf(run) : null
  return found && !isHeld(found) ? found : null
}

function claimedOf(run: NonNullable<Awaited<ReturnType<typeof readRun>>>): Claimed {
  return { status: 'claimed', taskKey: run.taskKey, instanceId: run.instanceId!, attempt: run.attempt, fence: run.fence, maxAttempts: run.maxAttempts }
}

function isBlocked(outcome: Acquired | Conflict): outcome is Conflict {
  return 'reason' in outcome && (outcome.reason === 'overlap' || outcome.reason === 'held')
}

/** Polls with jitter; looks before it claims, so that a waiting launch does not fill the server's log with violations. */
async function waitForTurn(store: Store, plan: PlannedLaunch, patienceMs: number, first: Conflict): Promise<Acquired | Conflict> {
  const deadline = monotonicMs() + plan.waitMs
  let blocked = first
  for (let ceiling = FIRST_POLL_MS; ; ceiling = Math.min(ceiling * 2, LONGEST_POLL_MS)) {
    const left = deadline - monotonicMs()
    if (left <= 0 || plan.signal?.aborted) return { ...blocked, reason: 'wait_timeout' }
    await sleep(Math.min(left, ceiling * (0.5 + Math.random() / 2)), undefined, plan.signal && { signal: plan.signal }).catch(() => {}) // Only an abort rejects.
    if (await settle(store, patienceMs, () => isStillHeld(store, plan))) continue
    const outcome = await tryClaim(store, plan, patienceMs)
    if (!isBlocked(outcome)) return outcome
    blocked = outcome
  }
}

/** The run itself, or for one that could still be claimed the holder of its concurrency key. */
async function isStillHeld(store: Store, { request }: PlannedLaunch): Promise<boolean> {
  const own = await readRun(store, request.taskKey)
  const inTheWay = (own !== null && own.status !== 'pending') || request.concurrencyKey === null ? own : await readActive(store, request.concurrencyKey)
  return inTheWay?.status === 'processing' && !inTheWay.leaseOver && !isDead(inTheWay)
}

/**
 * Records the window as pending, then tries once more: if the holder ended before it could see our row, nobody else
 * would run it. Either it completes after our insert and sees the row, or we see that it has completed.
 */
async function queue(store: Store, plan: PlannedLaunch, patienceMs: number): Promise<Acquired | Conflict | Queued> {
  const { request } = plan
  await settle(store, patienceMs, () => queueRun(store, request))
  const outcome = await tryClaim(store, plan, patienceMs)
  if (!('reason' in outcome)) return outcome
  if (outcome.reason === 'overlap') return { status: 'queued', taskKey: request.taskKey }
  await record(store, plan, patienceMs, outcome)
  return outcome
}

async function record(store: Store, { request }: PlannedLaunch, patienceMs: number, conflict: Conflict): Promise<void> {
  const launchId = uuidv7()
  await settle(store, patienceMs, () => recordConflict(store, request, conflict, launchId))
}

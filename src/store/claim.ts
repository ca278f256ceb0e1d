/**
 * Claims a run by its key: a new key by INSERT, a pending one by a guarded UPDATE, a dead owner's by takeover.
 *
 * The unique constraints decide, never a read before: a violation of the primary key means somebody has the key, one
 * of the active key means another run of the same concurrency key is processing. Every other error is an error.
 */
import { LedgerError } from '../model/errors.ts'
import type { Conflict, ConflictReason } from '../model/outcome.ts'
import type { Holder, Instance, Run } from '../model/run.ts'
import { bar, barredBy } from './barred.ts'
import { fenceScope, raiseFence } from './fence.ts'
import { closeDead, type DeathCheck } from './lost.ts'
import { readActive, readRun } from './read-run.ts'
import type { Db, Store } from './tables.ts'
import { transition } from './transition.ts'

export interface ClaimRequest {
  readonly taskKey: string
  readonly task: string
  readonly window: { readonly start: Date; readonly end: Date; readonly zone: string } | null
  /** At most one run with it is processing; null lets any number. */
  readonly concurrencyKey: string | null
  readonly maxAttempts: number
  readonly leaseSeconds: number
  readonly instance: Instance
  /** The key was just read from the ledger: look at the row first instead of running into the primary key. */
  readonly isKnown?: boolean
}

export interface Claimed extends Holder {
  readonly status: 'claimed'
  readonly maxAttempts: number
}

/** Each round ends in an answer unless another process moved the row under us; this many surprises are a bug. */
const MAX_ROUNDS = 50

/**
 * @param isDead proves on this host that an owner's process is gone; a lease that ran out needs no proof
 * @returns the claim, or the conflict (not yet recorded)
 */
export async function claim(store: Store, request: ClaimRequest, isDead: DeathCheck): Promise<Claimed | Conflict> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const step = request.isKnown && round === 0 ? await claimKnown(store, request, isDead) : await claimAny(store, request, isDead)
    const outcome = step === 'overlap' ? await overlapConflict(store, request, isDead) : step
    if (outcome !== 'moved') return outcome
  }
  throw new LedgerError('INTERNAL', `claim of ${request.taskKey} met a different row in each of ${MAX_ROUNDS} rounds`, { taskKey: request.taskKey })
}

/** `moved`: somebody changed the row between two looks, so look again. */
type Step = Claimed | Conflict | 'overlap' | 'moved'

async function claimAny(store: Store, request: ClaimRequest, isDead: DeathCheck): Promise<Step> {
  const fresh = await claimNew(store, request)
  const isPruned = typeof fresh === 'object' && fresh.status === 'conflict' && fresh.reason === 'pruned'
  if (fresh !== 'primary' && fresh !== 'active' && !isPruned) return fresh
  // Databases report either violation first when both are there; what happened to our own key is the better answer. So
  // it is where a prune went past a run that it kept.
  const known = await claimKnown(store, request, isDead)
  if (isPruned && known === 'moved') return fresh
  return known === 'moved' && fresh === 'active' ? 'overlap' : known
}

/** The claim of a key that nobody has had; otherwise which constraint stood in the way. */
async function claimNew(store: Store, request: ClaimRequest): Promise<Claimed | Conflict | 'moved' | 'primary' | 'active'> {
  try {
    const fence = await store.insertFenced({
      scope: fenceScope(request),
      table: 'task_runs',
      values: { ...newRun(store, request), ...ownedBy(store, request), active_key: request.concurrencyKey, attempt: 1 },
      unless: bar(store, request),
    })
    if (fence !== null) return { status: 'claimed', taskKey: request.taskKey, instanceId: request.instance.id, attempt: 1, fence, maxAttempts: request.maxAttempts }
  } catch (error) {
    return violatedKey(store, error)
  }
  return (await barredConflict(store, request)) ?? 'moved'
}

function newRun(store: Store, request: ClaimRequest) {
  const { window } = request
  return {
    task_key: request.taskKey,
    task_name: request.task,
    window_start: window ? store.instant(window.start) : null,
    window_end: window ? store.instant(window.end) : null,
    window_zone: window?.zone ?? null,
    concurrency_key: request.concurrencyKey,
    max_attempts: request.maxAttempts,
    available_at: store.now(),
    created_at: store.now(),
  }
}

/** The columns that say who holds a run since when; the lease begins with the claim, on the database's clock. */
export function ownedBy(store: Store, { instance, leaseSeconds }: Pick<ClaimRequest, 'instance' | 'leaseSeconds'>) {
  return {
    status: 'processing' as const,
    instance_id: instance.id,
    host: instance.host,
    pid: instance.pid,
    process_identity: instance.processIdentity,
    launcher: instance.launcher,
    lease_seconds: leaseSeconds,
    started_at: store.now(),
    heartbeat_at: store.now(),
  }
}

/** Which of our two keys an error is about. @throws the error itself when it is about anything else */
function violatedKey(store: Store, error: unknown): 'primary' | 'active' {
  const diagnosis = store.diagnose(error)
  if (diagnosis.kind === 'duplicate' && diagnosis.constraint === 'primary') return 'primary'
  if (diagnosis.kind === 'duplicate' && diagnosis.constraint === 'task_runs_active_key') return 'active'
  throw error
}

async function claimKnown(store: Store, request: ClaimRequest, isDead: DeathCheck): Promise<Step> {
  const run = await readRun(store, request.taskKey)
  if (!run) return 'moved'
  const claimable = (run.status === 'pending' && run.due) || (run.status === 'processing' && (run.leaseOver || isDead(run)))
  // A run that is there was not pruned; only a pause stands in its way.
  const barred = claimable ? await barredConflict(store, { ...request, window: null }) : null
  if (barred) return barred
  switch (run.status) {
    case 'completed':
      return conflict('done', run)
    case 'failed':
      return conflict('failed', run)
    case 'pending':
      return run.due ? take(store, request, run) : conflict('not_due', run)
    case 'processing':
      return claimable ? takeOver(store, request, run) : conflict('held', run)
  }
}

async function barredConflict(store: Store, request: Pick<ClaimRequest, 'taskKey' | 'task' | 'window'>): Promise<Conflict | null> {
  const reason = await barredBy(store, request)
  return reason && { status: 'conflict', reason, taskKey: request.taskKey, holder: null, dueAt: null }
}

async function take(store: Store, request: ClaimRequest, run: Run): Promise<Step> {
  try {
    return await store.transaction((tx) => takeIn(store, tx, request, run))
  } catch (error) {
    return violatedKey(store, error) === 'active' ? 'overlap' : 'moved'
  }
}

async function takeIn(store: Store, tx: Db, request: ClaimRequest, run: Run): Promise<Claimed | 'moved'> {
  const concurrencyKey = keyOf(request, run)
  const fence = await raiseFence(tx, fenceScope({ ...request, concurrencyKey }), run.fence)
  const attempt = run.attempt + 1
  const taken = await transition(store, tx, {
    move: 'take',
    of: { taskKey: run.taskKey, instanceId: null, attempt: run.attempt, fence: 0n },
    set: { ...ownedBy(store, request), concurrency_key: concurrencyKey, active_key: concurrencyKey, attempt, fence },
  })
  if (!taken) return 'moved'
  return { status: 'claimed', taskKey: run.taskKey, instanceId: request.instance.id, attempt, fence, maxAttempts: run.maxAttempts }
}

/** A run that was enqueued under a concurrency key of its own keeps it, whatever the launch that takes it up excludes. */
function keyOf(request: ClaimRequest, run: Run): string | null {
  return run.concurrencyKey !== null && run.concurrencyKey !== run.task ? run.concurrencyKey : request.concurrencyKey
}

/** Closes the dead owner's attempt as lost and takes the run, in one transaction; without attempts left it fails instead. */
async function takeOver(store: Store, request: ClaimRequest, run: Run): Promise<Step> {
  try {
    return await store.transaction(async (tx) => {
      const closed = await closeDead(store, tx, run)
      if (closed === 'failed') return conflict('failed', run)
      return closed === 'pending' ? takeIn(store, tx, request, run) : 'moved'
    })
  } catch (error) {
    return violatedKey(store, error) === 'active' ? 'overlap' : 'moved'
  }
}

/** The conflict with the run that holds our concurrency key; `moved` when it is gone, or was dead and has been closed. */
async function overlapConflict(store: Store, request: ClaimRequest, isDead: DeathCheck): Promise<Conflict | 'moved'> {
  const own = await readRun(store, request.taskKey)
  const active = await readActive(store, (own ? keyOf(request, own) : request.concurrencyKey)!)
  if (!active || active.taskKey === request.taskKey) return 'moved' // Our own key is no overlap: look at it again.
  if (!active.leaseOver && !isDead(active)) return { ...conflict('overlap', active), taskKey: request.taskKey }
  await store.transaction((tx) => closeDead(store, tx, active))
  return 'moved'
}

function conflict(reason: ConflictReason, run: Run): Conflict {
  const { taskKey, instanceId, host, pid, launcher, attempt, startedAt: since, heartbeatAt, leaseSeconds } = run
  const holder = run.instanceId === null ? null : { taskKey, instanceId, host, pid, launcher, attempt, since, heartbeatAt, leaseSeconds }
  return { status: 'conflict', reason, taskKey, holder, dueAt: reason === 'not_due' ? run.availableAt : null }
}

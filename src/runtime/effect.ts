/**
 * Performs an effect at most once per idempotency key, as far as anybody can know, and says so where nobody can.
 *
 * Recorded as begun before, as done after. What lies between is the window in which a crash leaves it in doubt; it is
 * then never silently repeated (docs/guarantees.md).
 */
import { v7 as uuidv7 } from 'uuid'
import { effectKey, isNotPerformed, type EffectRecord } from '../model/effect.ts'
import { LedgerError } from '../model/errors.ts'
import { isJsonText, jsonText, jsonValue } from '../model/json-value.ts'
import type { Holder, Instance } from '../model/run.ts'
import { beginEffect, takeEffect, type EffectCall } from '../store/begin-effect.ts'
import { finishEffect, leaveEffect } from '../store/end-effect.ts'
import { readEffect } from '../store/read-effect.ts'
import type { Store } from '../store/tables.ts'
import { isDead } from './acquire.ts'
import { boundedError } from './ending.ts'
import { RECORDING_PATIENCE_MS, settle } from './settle.ts'

/**
 * Does it. `idempotencyKey` is the same on every attempt: hand it to an interface that accepts one. `signal` aborts
 * when the lease is lost. Throw NotPerformed when it certainly did not happen.
 */
export type Perform<T> = (idempotencyKey: string, signal: AbortSignal) => Promise<T> | T

/** What the authoritative system says: it happened, with its result; it did not; or (undefined) it cannot say either. */
export type Reconciled<T> = { readonly done: true; readonly result: T } | { readonly done: false } | undefined

export interface EffectOptions<T> {
  /** A business key, such as `charge:order-42`: makes the effect unique across runs and tasks. Without it, it is unique within its run. */
  readonly key?: string
  /**
   * When an earlier attempt began the effect and nobody knows whether it happened: `fail` (the default) throws
   * EFFECT_IN_DOUBT; `repeat` performs again with the same idempotency key; a function asks whoever knows.
   */
  readonly onDoubt?: 'fail' | 'repeat' | ((record: EffectRecord) => Promise<Reconciled<T>> | Reconciled<T>)
}

export interface EffectScene {
  readonly store: Store
  readonly task: string
  readonly holder: Holder
  readonly instance: Pick<Instance, 'host' | 'pid'>
  readonly signal: AbortSignal
  readonly patienceMs: number
  /** LEASE_LOST, with who has the run now. */
  lost(): Promise<LedgerError>
}

/** Each round ends in an answer unless another process moved the row under us; this many surprises are a bug. */
const MAX_ROUNDS = 50

/** @returns what was recorded: the same value now and at every later call, after its passage through JSON */
export async function performEffect<T>(scene: EffectScene, name: string, perform: Perform<T>, { key, onDoubt = 'fail' }: EffectOptions<T> = {}): Promise<T> {
  const { store, task, holder, instance } = scene
  const call: EffectCall = { effectKey: effectKey(holder.taskKey, name, key), name, task, callId: uuidv7(), holder, instance }
  const start = await begin(scene, call, onDoubt === 'fail')
  if (start.status === 'done') return recorded(start.record) as T
  if (start.doubt && typeof onDoubt === 'function') {
    const verdict = await ask(store, call, () => onDoubt(start.doubt!))
    if (verdict.done) return record(scene, call, verdict.result)
  }
  return record(scene, call, await attempt(store, call, () => perform(call.effectKey, scene.signal)))
}

type Start = { readonly status: 'done'; readonly record: EffectRecord } | { readonly status: 'begun'; readonly doubt: EffectRecord | null }

/** @throws EFFECT_IN_DOUBT, EFFECT_HELD, LEASE_LOST */
async function begin(scene: EffectScene, call: EffectCall, failInDoubt: boolean): Promise<Start> {
  const { store, patienceMs } = scene
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const fresh = await settle(store, patienceMs, async (uncertain) => (uncertain && (await isOurs(store, call)) ? 'begun' : beginEffect(store, call)))
    if (fresh === 'begun') return { status: 'begun', doubt: null }
    if (fresh === 'lost') throw await scene.lost()
    const seen = await settle(store, patienceMs, () => readEffect(store, call.effectKey))
    if (!seen) continue
    if (seen.status === 'done') return { status: 'done', record: seen }
    const provenGone = seen.live && isDead(seen)
    if (seen.live && !provenGone) throw held(seen)
    const doubt = seen.status === 'not_done' ? null : seen
    if (doubt && failInDoubt) throw inDoubt(doubt)
    const taken = await settle(store, patienceMs, async (uncertain) => (uncertain && (await isOurs(store, call)) ? 'begun' : takeEffect(store, call, seen, provenGone)))
    if (taken === 'begun') return { status: 'begun', doubt }
  }
  throw new LedgerError('INTERNAL', `effect ${call.effectKey} met a different record in each of ${MAX_ROUNDS} rounds`, { effectKey: call.effectKey })
}

async function isOurs(store: Store, call: EffectCall): Promise<boolean> {
  return (await readEffect(store, call.effectKey))?.callId === call.callId
}

/** What whoever knows says; when they cannot, the effect stays in doubt. */
async function ask<T>(store: Store, call: EffectCall, question: () => Promise<Reconciled<T>> | Reconciled<T>): Promise<Exclude<Reconciled<T>, undefined>> {
  const verdict = await attempt(store, call, question, 'nobody could say yet whether it happened')
  if (verdict !== undefined) return verdict
  await leave(store, call, 'in_doubt', 'whoever was asked could not say whether it happened')
  throw inDoubt((await readEffect(store, call.effectKey)) ?? { ...call, ...call.holder, startedAt: null })
}

/** Calls, and records that a call which threw did not say whether it happened, unless it said that it did not. */
async function attempt<T>(store: Store, call: EffectCall, perform: () => Promise<T> | T, when = 'it ended without saying whether it happened'): Promise<T> {
  try {
    return await perform()
  } catch (error) {
    await leave(store, call, isNotPerformed(error) ? 'not_done' : 'in_doubt', `${when}: ${boundedError(error)}`)
    throw error
  }
}

async function leave(store: Store, call: EffectCall, status: 'in_doubt' | 'not_done', problem: string): Promise<void> {
  // What cannot be recorded stays `started`, and is in doubt when this attempt has ended; what was thrown counts more.
  await leaveEffect(store, call, status, problem).catch(() => {})
}

/** It happened: that is recorded, however long the database is away and whoever holds the run by then. */
async function record<T>({ store }: EffectScene, call: EffectCall, value: unknown): Promise<T> {
  const json = jsonText(value)
  const outcome = 'text' in json ? { result: json.text, problem: null } : { result: null, problem: json.problem }
  const isFirst = await settle(store, RECORDING_PATIENCE_MS, () => finishEffect(store, call, outcome))
  if (outcome.problem !== null) throw notRecordable(call.effectKey, outcome.problem, value)
  const known = isFirst ? null : await settle(store, RECORDING_PATIENCE_MS, () => readEffect(store, call.effectKey))
  return (known?.status === 'done' ? recorded(known) : jsonValue(outcome.result)) as T
}

function recorded({ effectKey, result, problem }: EffectRecord): unknown {
  if (result === null && problem !== null) throw notRecordable(effectKey, problem)
  if (result !== null && !isJsonText(result)) throw notRecordable(effectKey, 'what stands in its row is not JSON')
  return jsonValue(result)
}

function notRecordable(effectKey: string, problem: string, value?: unknown): LedgerError {
  return new LedgerError('RESULT_NOT_RECORDABLE', `effect ${effectKey} is done and recorded as done, but not its result: ${problem}; 'runledger effect resolve ${effectKey} --done --result JSON' supplies one`, { effectKey, problem }, value)
}

type Doubtful = Pick<EffectRecord, 'effectKey' | 'taskKey' | 'attempt' | 'instanceId'> & { readonly startedAt: Date | null; readonly host?: string | null; readonly pid?: number | null; readonly problem?: string | null }

function inDoubt({ effectKey, taskKey, attempt, instanceId, host, pid, startedAt, problem }: Doubtful): LedgerError {
  const who = `attempt ${attempt} of ${taskKey} (${host ?? 'unknown host'} pid ${pid ?? '?'})`
  return new LedgerError(
    'EFFECT_IN_DOUBT',
    `${effectKey} was begun by ${who}${startedAt ? ` at ${startedAt.toISOString()}` : ''}, and nobody knows whether it happened; ask the other side, then 'runledger effect resolve ${effectKey} --done' or '--not-done'`,
    { effectKey, taskKey, attempt, instanceId, host, pid, startedAt: startedAt?.toISOString(), problem },
  )
}

function held({ effectKey, taskKey, attempt, instanceId, host, pid, startedAt }: EffectRecord): LedgerError {
  return new LedgerError('EFFECT_HELD', `${effectKey} is being performed by attempt ${attempt} of ${taskKey} (${host ?? 'unknown host'} pid ${pid ?? '?'}) since ${startedAt.toISOString()}`, { effectKey, taskKey, attempt, instanceId, host, pid, startedAt: startedAt.toISOString() })
}

/** Records what became of an effect. That it happened is recorded whoever holds the run by then: it is the truth. */
import { sql } from 'kysely'
import type { EffectCall } from './begin-effect.ts'
import type { EffectRecord, EffectStatus } from '../model/effect.ts'
import type { Store } from './tables.ts'

export interface Outcome {
  /** JSON; null where nothing was returned or it cannot be recorded. */
  readonly result: string | null
  readonly problem: string | null
}

/**
 * Records that it happened; the first result stays. A row that is not there (lost with the tail of a failover) is made.
 * @returns false when it was recorded as done before
 */
export async function finishEffect(store: Store, call: EffectCall, { result, problem }: Outcome): Promise<boolean> {
  const { numUpdatedRows } = await store.statement((db) =>
    db
      .updateTable('task_effects')
      .set({ status: 'done', done_at: store.now(), result, problem })
      .where('effect_key', '=', call.effectKey)
      .where('status', '<>', 'done')
      .executeTakeFirstOrThrow(),
  )
  return numUpdatedRows === 1n || insertDone(store, call, { result, problem })
}

async function insertDone(store: Store, { effectKey, name, task, callId, holder, instance }: EffectCall, outcome: Outcome): Promise<boolean> {
  const { taskKey, instanceId, attempt, fence } = holder
  const who = { task_key: taskKey, task_name: task, instance_id: instanceId, attempt, fence, host: instance.host, pid: instance.pid }
  try {
    await store.statement((db) =>
      db.insertInto('task_effects').values({ effect_key: effectKey, effect_name: name, status: 'done', call_id: callId, calls: 1, ...who, started_at: store.now(), done_at: store.now(), ...outcome }).execute(),
    )
    return true
  } catch (error) {
    const diagnosis = store.diagnose(error)
    if (diagnosis.kind === 'duplicate' && diagnosis.constraint === 'primary') return false
    throw error
  }
}

/** What a call that did not end well leaves behind: `in_doubt`, or `not_done` where that is certain. Only if it is still the last call. */
export async function leaveEffect(store: Store, call: Pick<EffectCall, 'effectKey' | 'callId'>, status: 'in_doubt' | 'not_done', problem: string): Promise<void> {
  await store.statement((db) =>
    db
      .updateTable('task_effects')
      .set({ status, problem })
      .where('effect_key', '=', call.effectKey)
      .where('call_id', '=', call.callId)
      .where('status', '=', 'started')
      .execute(),
  )
}

/** An operator's word, who gave it, and when. @returns false when the effect is not what the record says any more */
export async function resolveEffect(store: Store, seen: EffectRecord, verdict: Extract<EffectStatus, 'done' | 'not_done'>, by: string, result: string | null): Promise<boolean> {
  const { numUpdatedRows } = await store.statement((db) =>
    db
      .updateTable('task_effects')
      .set({ status: verdict, done_at: verdict === 'done' ? sql`coalesce(done_at, ${store.now()})` : null, result, problem: null, resolved_by: by, resolved_at: store.now() })
      .where('effect_key', '=', seen.effectKey)
      .where('call_id', '=', seen.callId)
      .where('status', '=', seen.status)
      .executeTakeFirstOrThrow(),
  )
  return numUpdatedRows === 1n
}

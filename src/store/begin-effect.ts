/**
 * Begins an effect, before anything is done: a new one by INSERT, one that is in doubt or was not done by a guarded
 * UPDATE. Both only while the run is held by that attempt, judged by the database in the same statement.
 */
import { sql } from 'kysely'
import type { EffectRecord } from '../model/effect.ts'
import type { Holder, Instance } from '../model/run.ts'
import { liveHolder } from './read-effect.ts'
import type { Store } from './tables.ts'

export interface EffectCall {
  readonly effectKey: string
  readonly name: string
  readonly task: string
  /** New for each call of perform: tells two calls of one attempt apart, and ours after an unknown commit. */
  readonly callId: string
  readonly holder: Holder
  readonly instance: Pick<Instance, 'host' | 'pid'>
}

/** @returns `known`: the key is there, read it; `lost`: the run is not held by this attempt any more */
export async function beginEffect(store: Store, { effectKey, name, task, callId, holder, instance }: EffectCall): Promise<'begun' | 'known' | 'lost'> {
  try {
    const { numAffectedRows } = await store.statement((db) =>
      sql`
        insert into ${store.table('task_effects')} (effect_key, effect_name, task_name, status, call_id, host, pid, task_key, instance_id, attempt, fence, started_at)
        select ${effectKey}, ${name}, ${task}, 'started', ${callId}, ${instance.host}, ${sql.lit(instance.pid)}, task_key, instance_id, attempt, fence, ${store.now()}
        ${liveHolder(store, holder)}`.execute(db),
    )
    return numAffectedRows === 1n ? 'begun' : 'lost'
  } catch (error) {
    const diagnosis = store.diagnose(error)
    if (diagnosis.kind === 'duplicate' && diagnosis.constraint === 'primary') return 'known'
    throw error
  }
}

/**
 * Takes over what the record says, if it still says so. Unless the process of its attempt is proven gone, the write asks
 * the database once more whether that attempt lives: a heartbeat that came in meanwhile keeps the effect where it is.
 * @returns `moved`: somebody else was first, its attempt lives after all, or the run is not ours any more
 */
export async function takeEffect(store: Store, { callId, holder, instance, task, name }: EffectCall, seen: EffectRecord, provenGone: boolean): Promise<'begun' | 'moved'> {
  const { numUpdatedRows } = await store.statement((db) => {
    const take = db
      .updateTable('task_effects')
      .set({
        status: 'started',
        call_id: callId,
        calls: sql<number>`calls + 1`,
        effect_name: name,
        task_key: holder.taskKey,
        task_name: task,
        instance_id: holder.instanceId,
        attempt: holder.attempt,
        fence: holder.fence,
        host: instance.host,
        pid: instance.pid,
        started_at: store.now(),
        problem: null,
      })
      .where('effect_key', '=', seen.effectKey)
      .where('call_id', '=', seen.callId)
      .where('status', '=', seen.status)
      .where(sql<boolean>`exists (select 1 ${liveHolder(store, holder)})`)
    const mayLive = seen.status === 'started' && !provenGone
    return (mayLive ? take.where(sql<boolean>`not exists (select 1 ${liveHolder(store, seen)})`) : take).executeTakeFirstOrThrow()
  })
  return numUpdatedRows === 1n ? 'begun' : 'moved'
}

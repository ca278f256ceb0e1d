/** Reads effects, each with whether the attempt that called it still lives, judged by the database's clock. */
import { sql, type RawBuilder } from 'kysely'
import type { EffectRecord } from '../model/effect.ts'
import { leaseIsOver } from './read-run.ts'
import type { Store } from './tables.ts'

export interface EffectFilter {
  readonly task?: string | undefined
  readonly taskKey?: string | undefined
  /** Only those of which nobody can say whether they happened. */
  readonly inDoubt?: boolean | undefined
  readonly limit: number
}

/** An effect and the process of its attempt, for a proof on this host that it is gone. */
export interface SeenEffect extends EffectRecord {
  readonly processIdentity: string | null
}

export async function readEffect(store: Store, effectKey: string): Promise<SeenEffect | null> {
  const row = await select(store, 'task_effects').where('e.effect_key', '=', effectKey).executeTakeFirst()
  return row ? effectOf(store, row) : null
}

/** The newest first; those in doubt the oldest first, for they have waited longest. */
export async function listEffects(store: Store, { task, taskKey, inDoubt = false, limit }: EffectFilter): Promise<EffectRecord[]> {
  let query = select(store, inDoubt ? 'task_effects_in_doubt' : 'task_effects').orderBy('e.started_at', inDoubt ? 'asc' : 'desc').orderBy('e.effect_key').limit(limit)
  if (task !== undefined) query = query.where('e.task_name', '=', task)
  if (taskKey !== undefined) query = query.where('e.task_key', '=', taskKey)
  const rows = await query.execute()
  return rows.map((row) => {
    const { processIdentity: _, ...record } = effectOf(store, row)
    return record
  })
}

/** Selects the run's row when it is held by that attempt now: stands inside writes that only a live holder may make. */
export function liveHolder(store: Store, of: { readonly taskKey: string; readonly instanceId: string; readonly attempt: number; readonly fence: bigint }): RawBuilder<unknown> {
  return sql`
    from ${store.table('task_runs')}
    where task_key = ${of.taskKey} and instance_id = ${of.instanceId} and attempt = ${of.attempt} and fence = ${of.fence}
      and status = 'processing' and not ${leaseIsOver(store)}`
}

function select(store: Store, from: 'task_effects' | 'task_effects_in_doubt') {
  // Of the run, only the attempt that called the effect: no row, no life.
  const attempt = store.db
    .selectFrom('task_runs')
    .select(['task_key as run_key', 'instance_id as run_instance', 'attempt as run_attempt', 'process_identity'])
    .where('status', '=', 'processing')
    .select(sql<number>`case when ${leaseIsOver(store)} then 0 else 1 end`.as('live'))
  return store.db
    .selectFrom(`${from} as e`)
    .leftJoin(attempt.as('r'), (join) => join.onRef('r.run_key', '=', 'e.task_key').onRef('r.run_instance', '=', 'e.instance_id').onRef('r.run_attempt', '=', 'e.attempt'))
    .selectAll('e')
    .select(['r.live', 'r.process_identity'])
}

function effectOf(store: Store, row: SelectedEffect): SeenEffect {
  const at = (value: unknown) => store.readInstant(value)
  return {
    effectKey: row.effect_key,
    name: row.effect_name,
    taskKey: row.task_key,
    task: row.task_name,
    status: row.status,
    callId: row.call_id,
    calls: row.calls,
    instanceId: row.instance_id,
    attempt: row.attempt,
    fence: BigInt(row.fence),
    host: row.host,
    pid: row.pid === null ? null : Number(row.pid),
    startedAt: at(row.started_at)!,
    doneAt: at(row.done_at),
    result: row.result,
    problem: row.problem,
    resolvedBy: row.resolved_by,
    resolvedAt: at(row.resolved_at),
    live: row.status === 'started' && Number(row.live ?? 0) === 1,
    processIdentity: row.process_identity,
  }
}

type SelectedEffect = Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirstOrThrow']>>

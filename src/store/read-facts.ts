/** Reads runs, their history and effects in the order of their keys, a page at a time, as verify wants them. */
import { sql } from 'kysely'
import type { EffectFacts } from '../model/check-effect.ts'
import type { AttemptLine, RunFacts } from '../model/check-run.ts'
import type { Store } from './tables.ts'

/** All of it, or what belongs to one task. */
export interface Scan {
  readonly task: string | undefined
  readonly pageSize: number
}

const FACTS = [
  'task_key', 'task_name', 'status', 'attempt', 'max_attempts', 'fence', 'active_key', 'concurrency_key', 'failure_reason', 'window_start', 'window_end', 'window_zone',
  'finished_at', 'created_at', 'instance_id', 'started_at', 'heartbeat_at', 'lease_seconds',
] as const

/** Keys begin with the task's name and a colon, so those of a task stand together in the primary key. */
export async function readRunFacts(store: Store, { task, pageSize }: Scan, after: string): Promise<RunFacts[]> {
  let query = store.db.selectFrom('task_runs').select(FACTS).where('task_key', '>', after).orderBy('task_key').limit(pageSize)
  if (task !== undefined) query = query.where('task_key', '>', `${task}:`).where('task_key', '<', `${task};`).where('task_name', '=', task)
  return (await query.execute()).map((row) => factsOf(store, row))
}

export async function readRunFact(store: Store, taskKey: string): Promise<RunFacts | null> {
  const row = await store.db.selectFrom('task_runs').select(FACTS).where('task_key', '=', taskKey).executeTakeFirst()
  return row ? factsOf(store, row) : null
}

type Row = { [K in (typeof FACTS)[number]]: unknown }

function factsOf(store: Store, row: Row): RunFacts {
  const text = (name: keyof Row) => row[name] as string | null
  return {
    taskKey: text('task_key')!,
    task: text('task_name')!,
    status: text('status')!,
    attempt: Number(row.attempt),
    maxAttempts: Number(row.max_attempts),
    fence: BigInt(row.fence as string),
    activeKey: text('active_key'),
    concurrencyKey: text('concurrency_key'),
    failureReason: text('failure_reason'),
    isOwned: row.instance_id !== null && row.started_at !== null && row.heartbeat_at !== null && row.lease_seconds !== null,
    windowStart: store.readInstant(row.window_start),
    windowEnd: store.readInstant(row.window_end),
    windowZone: text('window_zone'),
    finishedAt: store.readInstant(row.finished_at),
    createdAt: store.readInstant(row.created_at)!,
  }
}

/** The attempts of these runs that did not complete them, each in the order they were written. */
export async function readAttemptLines(store: Store, keys: readonly string[]): Promise<Map<string, AttemptLine[]>> {
  if (keys.length === 0) return new Map()
  const rows = await store.db.selectFrom('task_attempts').select(['task_key', 'attempt', 'outcome', 'fence']).where('task_key', 'in', keys).where('outcome', '<>', 'conflict').orderBy('task_key').orderBy('id').execute()
  return Map.groupBy(rows.map(({ task_key: taskKey, attempt, outcome, fence }) => ({ taskKey, attempt, outcome, fence: fence === null ? null : BigInt(fence) })), ({ taskKey }) => taskKey)
}

export interface LineFacts extends AttemptLine {
  readonly id: number
  readonly taskKey: string
  readonly task: string
  readonly reason: string | null
}

/** Every line, conflicts too, after the one given. */
export async function readLines(store: Store, { task, pageSize }: Scan, after: { readonly taskKey: string; readonly id: number }): Promise<LineFacts[]> {
  let query = store.db
    .selectFrom('task_attempts')
    .select(['id', 'task_key', 'task_name', 'attempt', 'outcome', 'reason', 'fence'])
    .where('task_key', '>=', after.taskKey)
    .where((or) => or.or([or('task_key', '>', after.taskKey), or('id', '>', after.id)]))
    .orderBy('task_key')
    .orderBy('id')
    .limit(pageSize)
  if (task !== undefined) query = query.where('task_key', '>', `${task}:`).where('task_key', '<', `${task};`)
  const rows = await query.execute()
  return rows.map((row) => ({ id: row.id, taskKey: row.task_key, task: row.task_name, attempt: row.attempt, outcome: row.outcome, reason: row.reason, fence: row.fence === null ? null : BigInt(row.fence) }))
}

/** Which of the keys have a run. */
export async function presentRuns(store: Store, keys: readonly string[]): Promise<Set<string>> {
  if (keys.length === 0) return new Set()
  const rows = await store.db.selectFrom('task_runs').select('task_key').where('task_key', 'in', keys).execute()
  return new Set(rows.map(({ task_key }) => task_key))
}

export async function readEffectFacts(store: Store, { task, pageSize }: Scan, after: string): Promise<EffectFacts[]> {
  let query = store.db
    .selectFrom('task_effects')
    .select(['effect_key', 'task_name', 'status', 'calls', 'done_at', 'resolved_by', 'resolved_at', sql<number>`case when result is null then 0 else 1 end`.as('has_result')])
    .where('effect_key', '>', after)
    .orderBy('effect_key')
    .limit(pageSize)
  if (task !== undefined) query = query.where('task_name', '=', task)
  const rows = await query.execute()
  return rows.map((row) => ({
    effectKey: row.effect_key, task: row.task_name, status: row.status, calls: Number(row.calls), hasResult: Number(row.has_result) === 1,
    doneAt: store.readInstant(row.done_at), resolvedBy: row.resolved_by, resolvedAt: store.readInstant(row.resolved_at),
  }))
}

/** Active keys that more than one processing run holds: the unique index would be gone. */
export async function doubleActiveKeys(store: Store): Promise<{ activeKey: string; holders: string[] }[]> {
  const doubled = await store.db.selectFrom('task_runs').select('active_key').where('status', '=', 'processing').where('active_key', 'is not', null).groupBy('active_key').having(sql<boolean>`count(*) > 1`).execute()
  const keys = doubled.map(({ active_key }) => active_key!)
  if (keys.length === 0) return []
  const rows = await store.db.selectFrom('task_runs').select(['active_key', 'task_key']).where('active_key', 'in', keys).orderBy('task_key').execute()
  return keys.map((activeKey) => ({ activeKey, holders: rows.filter(({ active_key }) => active_key === activeKey).map(({ task_key }) => task_key) }))
}

/** The counters of these scopes. */
export async function readCounters(store: Store, scopes: readonly string[]): Promise<Map<string, bigint>> {
  const rows = await store.db.selectFrom('task_fences').select(['scope', 'counter']).where('scope', 'in', scopes).execute()
  return new Map(rows.map(({ scope, counter }) => [scope, BigInt(counter)]))
}

/** What was pruned when: from then on, no window of the task that begins before the bar may come up anew. */
export interface Bar {
  readonly prunedBefore: Date
  readonly since: Date
}

export async function readBars(store: Store): Promise<Map<string, Bar[]>> {
  const rows = await store.db.selectFrom('task_actions').select(['task_name', 'details', 'acted_at']).where('action', '=', 'prune').where('task_name', 'is not', null).execute()
  const bars = rows.flatMap(({ task_name, details, acted_at }) => {
    const { pruned_before } = JSON.parse(details ?? '{}') as { pruned_before?: string | null }
    return pruned_before ? [{ task: task_name!, prunedBefore: new Date(pruned_before), since: store.readInstant(acted_at)! }] : []
  })
  return Map.groupBy(bars, ({ task }) => task)
}

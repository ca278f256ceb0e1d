/** Trouble that is there right now: leases that ran out, effects in doubt, launches in each other's way. */
import { sql } from 'kysely'
import { isDue, leaseIsOver } from './read-run.ts'
import type { WindowRun } from '../model/missing.ts'
import type { Store } from './tables.ts'

export interface StaleRun {
  readonly task: string
  readonly taskKey: string
  readonly host: string | null
  readonly pid: number | null
  readonly heartbeatAt: Date
}

/** Attempts whose lease ran out longer ago than that, the oldest first. */
export async function staleRuns(store: Store, longerMs: number, limit: number, task?: string): Promise<StaleRun[]> {
  const leaseEnd = store.plusSeconds(sql.ref('heartbeat_at'), sql.ref('lease_seconds'))
  let query = store.db
    .selectFrom('task_runs')
    .select(['task_name', 'task_key', 'host', 'pid', 'heartbeat_at'])
    .where(sql<boolean>`status = 'processing'`)
    .where(sql<boolean>`${store.plusSeconds(leaseEnd, sql.lit(longerMs / 1000))} < ${store.now()}`)
    .orderBy('heartbeat_at')
    .limit(limit)
  if (task !== undefined) query = query.where('task_name', '=', task)
  const rows = await query.execute()
  return rows.map((row) => ({ task: row.task_name, taskKey: row.task_key, host: row.host, pid: row.pid === null ? null : Number(row.pid), heartbeatAt: store.readInstant(row.heartbeat_at)! }))
}

export interface Doubt {
  readonly task: string
  readonly taskKey: string
  readonly effectKey: string
  readonly startedAt: Date
}

export async function doubts(store: Store, limit: number, task?: string): Promise<Doubt[]> {
  let query = store.db.selectFrom('task_effects_in_doubt').select(['task_name', 'task_key', 'effect_key', 'started_at']).orderBy('started_at').limit(limit)
  if (task !== undefined) query = query.where('task_name', '=', task)
  const rows = await query.execute()
  return rows.map((row) => ({ task: row.task_name, taskKey: row.task_key, effectKey: row.effect_key, startedAt: store.readInstant(row.started_at)! }))
}

/** How many launches of each task met another of its runs since then; a launch that found its own window taken costs nothing. */
export async function overlapsSince(store: Store, since: Date, task?: string): Promise<Map<string, number>> {
  let query = store.db
    .selectFrom('task_attempts')
    .select(['task_name', sql<number | string>`count(*)`.as('overlaps')])
    .where(sql<boolean>`ended_at >= ${store.instant(since)}`)
    .where('outcome', '=', 'conflict')
    .where('reason', 'in', ['overlap', 'wait_timeout'])
    .groupBy('task_name')
  if (task !== undefined) query = query.where('task_name', '=', task)
  const rows = await query.execute()
  return new Map(rows.map((row) => [row.task_name, Number(row.overlaps)]))
}

const KEYS_AT_ONCE = 500

/** What became of these runs, by key; those that nobody began are not there. */
export async function runsOfKeys(store: Store, taskKeys: readonly string[]): Promise<Map<string, Pick<WindowRun, 'status' | 'attempt' | 'leaseOver' | 'due'>>> {
  const found = new Map<string, Pick<WindowRun, 'status' | 'attempt' | 'leaseOver' | 'due'>>()
  for (let at = 0; at < taskKeys.length; at += KEYS_AT_ONCE) {
    const rows = await store.db
      .selectFrom('task_runs')
      .select(['task_key', 'status', 'attempt'])
      .select([sql<number>`case when ${leaseIsOver(store)} then 1 else 0 end`.as('lease_over'), sql<number>`case when ${isDue(store)} then 1 else 0 end`.as('due')])
      .where('task_key', 'in', taskKeys.slice(at, at + KEYS_AT_ONCE))
      .execute()
    for (const row of rows) found.set(row.task_key, { status: row.status, attempt: row.attempt, leaseOver: Number(row.lease_over) === 1, due: Number(row.due) === 1 })
  }
  return found
}

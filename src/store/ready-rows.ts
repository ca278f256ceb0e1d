/** The runs first in line in a queue, locked: those that others have locked are passed over. */
import { sql } from 'kysely'
import { FLOOR_SCOPE } from '../dialect/dialect.ts'
import { LedgerError } from '../model/errors.ts'
import type { Holder } from '../model/run.ts'
import { beside, isStill } from './line.ts'
import type { Db, Store } from './tables.ts'

export interface ReadyQuery {
  readonly queue: string
  /** Only runs of these; the others stay in line for somebody else. */
  readonly tasks: readonly string[]
  readonly limit: number
  /** Only those of its priority that stand behind it. */
  readonly after?: Place | undefined
}

/** Where in its queue a run stands. */
export interface Place {
  readonly priority: number
  readonly position: bigint | number | string
}

export interface Bars {
  readonly floor: bigint
  readonly bars: { task_name: string; paused: number; pruned_before: unknown }[]
}

/** What bars a task (store/barred.ts), and the fence that nobody begins below; what the transaction reads after it, it reads by indexes. */
export async function readBars(store: Store, tx: Db, tasks: readonly string[]): Promise<Bars> {
  const { rows } = await sql<{ floor: bigint | number | string | null; task_name: string | null; pruned_before: unknown; paused: number | null }>`
    select b.task_name, b.pruned_before, case when b.paused_at is not null then 1 else 0 end as paused,
      (select counter from ${store.table('task_fences')} where scope = ${FLOOR_SCOPE}) as floor, ${store.trustIndexes} as trusted
    from (select 1 as one) as always
      left join ${store.table('tasks')} as b on (b.paused_at is not null or b.pruned_before is not null) and b.task_name in (${sql.join(tasks)})`.execute(tx)
  const bars = rows.flatMap(({ task_name, pruned_before, paused }) => (task_name === null ? [] : [{ task_name, pruned_before, paused: paused! }]))
  return { floor: BigInt(rows[0]!.floor ?? 0), bars }
}

export type ReadyRow = Awaited<ReturnType<ReturnType<typeof selectReady>['executeTakeFirstOrThrow']>>

/** Null when every task is barred. A run without a concurrency key is `mine` to take at once. */
export function readyQuery(store: Store, { queue, tasks, limit, after }: ReadyQuery, bars: Bars['bars']) {
  const paused = new Set(bars.filter((bar) => Number(bar.paused) === 1).map((bar) => bar.task_name))
  const open = tasks.filter((task) => !paused.has(task))
  if (open.length === 0) return null
  let query = selectReady(store, queue, open).limit(limit)
  // One priority: this is a range of the index then, on every database.
  if (after) query = query.where('priority', '=', after.priority).where('position', '>', after.position)
  for (const { task_name, pruned_before } of bars) {
    const at = store.readInstant(pruned_before)
    if (at) query = query.where(sql<boolean>`(task_name <> ${task_name} or window_start is null or window_start >= ${store.instant(at)})`)
  }
  return query
}

/** The first of those that nothing bars, each asked for by its key; and the fence that nobody begins below. */
export function firstQuery(store: Store, { queue, tasks }: Pick<ReadyQuery, 'queue' | 'tasks'>) {
  const floor = sql<bigint | number | string>`coalesce((select counter from ${store.table('task_fences')} where scope = ${FLOOR_SCOPE}), 0)`
  const bars = sql`(select task_name as bars, paused_at as paused, pruned_before as pruned from ${store.table('tasks')}) as b`
  const barred = sql<boolean>`exists (select 1 from ${bars} where bars = task_name and (paused is not null or pruned > window_start))`
  const query = selectReady(store, queue, tasks).select(floor.as('floor')).where(beside(sql<boolean>`not ${barred}`)).limit(1)
  return { query, floor }
}

function selectReady(store: Store, queue: string, tasks: readonly string[]) {
  return store.db
    .selectFrom('task_runs')
    .select(['priority', 'position', 'task_key', 'task_name', 'window_start', 'window_end', 'window_zone', 'attempt', 'max_attempts', 'fence', 'concurrency_key', 'backoff_seconds', 'timeout_seconds', 'payload'])
    .select(sql<number>`case when concurrency_key is null then 1 else 0 end`.as('mine'))
    .select(sql<number>`case when concurrency_key is not null then concurrency_limit end`.as('concurrency_limit'))
    .where('ready_queue', '=', queue)
    // This index has the order, whatever the statistics say.
    .where(isStill('pending'))
    .where(beside(store.oneOf(sql.ref('task_name'), tasks)))
    .orderBy('priority')
    .orderBy('position')
}

export function readyHolder(row: ReadyRow): Holder {
  return { taskKey: row.task_key, instanceId: '', attempt: row.attempt, fence: BigInt(row.fence) }
}

/** We have their rows locked, so nobody else can have moved them. */
export function mustAllMove(moved: number, rows: readonly ReadyRow[]): void {
  if (moved !== rows.length) throw new LedgerError('INTERNAL', `of ${rows.length} locked runs ${moved} could be taken`, { taskKey: rows[0]!.task_key })
}

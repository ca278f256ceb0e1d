/**
 * The guarded write of transition.ts for many runs at once, for the moves that leave no line of history.
 *
 * Each row's guard is whole: its key, attempt, fence and state, and its instance where somebody holds it. Rows that do
 * not match are left as they are.
 */
import { sql, type RawBuilder, type SelectQueryBuilder } from 'kysely'
import type { Holder } from '../model/run.ts'
import { MOVES } from '../model/states.ts'
import { isStill } from './line.ts'
import { mustAllMove, type ReadyRow } from './ready-rows.ts'
import { columnsOf, placeInLine, type Changes } from './transition.ts'
import type { Db, Store, Tables } from './tables.ts'

export interface BatchTransition {
  readonly move: 'take' | 'complete'
  /** Of one instance; for `take` the attempts that ended last. */
  readonly of: readonly Holder[]
  readonly set?: Changes
}

/** @returns how many moved; fewer than were named: somebody else was first with the others */
export async function transitionMany(store: Store, db: Db, { move, of, set = {} }: BatchTransition): Promise<number> {
  const { from, to } = MOVES[move]
  const changes = { status: to, ...columnsOf(store, to, undefined, {}), ...placeInLine(store, to), ...set }
  const { numAffectedRows } = await sql`${store.often}
    update ${store.table('task_runs')} set ${sql.join(Object.entries(changes).map(([name, value]) => sql`${sql.ref(name)} = ${value}`))}
    where ${isOneOf(store, of)} and ${isStill(from)} ${from === 'processing' ? sql`and instance_id = ${of[0]!.instanceId}` : sql``}`.execute(db)
  return Number(numAffectedRows)
}

/**
 * `take` of the first runs in line that are `mine`: selected, locked and moved, so that the lock is the guard.
 * @returns all that the query selected, as they were before
 */
export async function takeReady<Row extends ReadyRow>(store: Store, tx: Db, select: SelectQueryBuilder<Tables, never, Row>, set: Changes): Promise<Row[]> {
  const { to } = MOVES.take
  const { rows, updated } = await store.updateSelected(tx, { table: 'task_runs', select, index: 'task_runs_ready_queue', set: { status: to, ...columnsOf(store, to, undefined, {}), ...placeInLine(store, to), ...set } })
  mustAllMove(updated, rows.filter((row) => row.concurrency_key === null))
  return rows
}

/** Key, attempt and fence of a row are those of one of them. The key stands alone as well, for its index. */
export function isOneOf(store: Store, of: readonly Pick<Holder, 'taskKey' | 'attempt' | 'fence'>[]): RawBuilder<boolean> {
  const { attempt, fence } = of[0]!
  const keys = store.oneOf(sql.ref('task_key'), of.map(({ taskKey }) => taskKey))
  // Most runs are done at the first attempt and under the first fence; then there is nothing to put together.
  if (of.every((one) => one.attempt === attempt && one.fence === fence)) return sql<boolean>`(${keys} and attempt = ${attempt} and fence = ${fence})`
  const whole = of.map((one) => `${one.attempt} ${one.fence} ${one.taskKey}`)
  return sql<boolean>`(${keys} and ${store.oneOf(sql`concat(attempt, ' ', fence, ' ', task_key)`, whole)})`
}

/**
 * The one guarded write that moves a run from state to state, and the line of history that goes with it.
 *
 * The WHERE clause is the lock: it repeats what the writer believes (key, instance, attempt, state), and the row
 * count is the verdict. Nothing is read first, and nobody else writes `status`.
 */
import { sql, type RawBuilder, type UpdateObject } from 'kysely'
import { LedgerError } from '../model/errors.ts'
import type { Ending, Holder } from '../model/run.ts'
import { MOVES, type FailureReason, type Move } from '../model/states.ts'
import { dueLater, inLine, OUT_OF_LINE } from './line.ts'
import type { Db, Store, Tables } from './tables.ts'

export type Changes = UpdateObject<Tables, 'task_runs'>

export interface Transition {
  readonly move: Move
  /** The attempt that ends, or for `take` the attempt that ended last (its instance is then not asked for). */
  readonly of: { readonly [K in keyof Holder]: Holder[K] | (K extends 'instanceId' ? null : never) }
  /** A further condition on the row, such as an expired lease. */
  readonly onlyIf?: RawBuilder<boolean> | undefined
  readonly set?: Changes
  /** For a move to pending: the run may not be claimed for so long; at once by default. */
  readonly laterSeconds?: number | undefined
  readonly reason?: FailureReason
  readonly ending?: Ending
  /** When the attempt ended, where that was before now. */
  readonly endedAt?: Date
}

/** @returns true when the row was ours to move and has moved; false when somebody else was first, and nothing changed */
export async function transition(store: Store, db: Db, { move, of, onlyIf, set = {}, laterSeconds, reason, ending = {}, endedAt }: Transition): Promise<boolean> {
  const { from, to, history } = MOVES[move]
  let update = db
    .updateTable('task_runs')
    .set({ status: to, ...columnsOf(store, to, reason, ending), ...placeInLine(store, to, laterSeconds), ...set })
    .where('task_key', '=', of.taskKey)
    .where('status', '=', from)
    .where('attempt', '=', of.attempt)
  if (from === 'processing') update = update.where('instance_id', '=', of.instanceId).where('fence', '=', of.fence)
  if (onlyIf) update = update.where(onlyIf)
  const { numUpdatedRows } = await update.executeTakeFirstOrThrow()
  if (numUpdatedRows > 1n) throw new LedgerError('INTERNAL', `${move} of ${of.taskKey} moved ${numUpdatedRows} rows; a key has at most one`, { taskKey: of.taskKey })
  if (numUpdatedRows === 0n) return false
  if (history) await recordAttempt(store, db, of, history, reason ?? null, ending, endedAt ? store.instant(endedAt) : movedAt(store, to, laterSeconds))
  return true
}

/** What a state says about the other columns; the CHECKs of the schema say the same. */
export function columnsOf(store: Store, to: string, reason: FailureReason | undefined, ending: Ending): Changes {
  const over = to === 'completed' || to === 'failed'
  return {
    ...(to !== 'processing' && { active_key: null }),
    ...(to === 'pending' && { cancel_requested_at: null }),
    finished_at: over ? store.now() : null,
    failure_reason: to === 'failed' ? (reason ?? 'error') : null,
    exit_code: over ? (ending.exitCode ?? null) : null,
    error: over ? (ending.error ?? null) : null,
    output_tail: over ? (ending.outputTail ?? null) : null,
  }
}

export function placeInLine(store: Store, to: string, laterSeconds = 0): Changes {
  if (to !== 'pending') return OUT_OF_LINE
  const at = laterSeconds === 0 ? store.now() : store.plusSeconds(store.now(), sql.lit(laterSeconds))
  return { ...(laterSeconds === 0 ? inLine() : dueLater(at)), available_at: at }
}

/**
 * When the row that has just moved did so, as it says itself. A clock read again by now would be later than that of whoever
 * already waits for the concurrency key, whose attempt would seem to have begun before this one ended.
 */
function movedAt(store: Store, to: string, laterSeconds = 0): RawBuilder<Date> {
  if (to !== 'pending') return sql<Date>`finished_at`
  return laterSeconds === 0 ? sql<Date>`available_at` : store.plusSeconds(sql.ref('available_at'), sql.lit(-laterSeconds))
}

/** Copies who it was and when from the row that has just moved. */
async function recordAttempt(store: Store, db: Db, of: Transition['of'], outcome: string, reason: FailureReason | null, ending: Ending, endedAt: RawBuilder<Date>): Promise<void> {
  const copied = ['task_key', 'task_name', 'window_start', 'window_end', 'window_zone', 'instance_id', 'host', 'pid', 'launcher', 'fence', 'started_at', 'heartbeat_at'].map((c) => sql.ref(c))
  await sql`
    insert into ${store.table('task_attempts')} (${sql.join(copied)}, attempt, outcome, reason, exit_code, error, output_tail, ended_at)
    select ${sql.join(copied)}, ${sql.lit(of.attempt)}, ${sql.lit(outcome)}, ${reason ? sql.lit(reason) : sql`null`},
      ${ending.exitCode ?? null}, ${ending.error ?? null}, ${ending.outputTail ?? null}, ${endedAt}
    from ${store.table('task_runs')} where task_key = ${of.taskKey}`.execute(db)
}

/**
 * Endings counted once and kept, so that a count costs what is new, survives pruning and retries, and never falls:
 * `task_totals` holds all endings before its mark, which keeps a minute behind for those whose commit is under way.
 */
import { sql } from 'kysely'
import type { EndingTotal, Ends } from '../model/measures.ts'
import type { Db, Store } from './tables.ts'

/** A transaction that ended a run longer ago than this and is still not committed would not be counted. */
export const SETTLED_MS = 60_000

/** No task has this name. */
const MARK = ''

export interface Mark {
  /** Endings before it are in the totals. */
  readonly before: Date
  /** Raised with each move of the mark: of two that count at once, one may add. */
  readonly version: number
}

export async function readTotals(store: Store): Promise<{ mark: Mark | null; totals: EndingTotal[] }> {
  const rows = await store.db.selectFrom('task_totals').selectAll().execute()
  const mark = rows.find((row) => row.task_name === MARK)
  const totals = rows.filter((row) => row.task_name !== MARK).map((row) => ({ task: row.task_name, ends: row.ends as Ends, outcome: row.outcome, reason: row.reason, endings: Number(row.endings), seconds: row.seconds }))
  return { mark: mark ? { before: store.readInstant(mark.counted_before)!, version: Number(mark.endings) } : null, totals }
}

/** Runs of one task that ended in `[from, to)`: one range of an index. */
export async function runEndings(store: Store, task: string, from: Date, to: Date): Promise<EndingTotal[]> {
  const query = store.db
    .selectFrom('task_runs')
    .select(['status as outcome', sql<string>`coalesce(failure_reason, '')`.as('reason'), sql<number | string>`count(*)`.as('endings')])
    .select([sql<number | null>`sum(${store.secondsBetween(sql.ref('started_at'), sql.ref('finished_at'))})`.as('seconds')])
    .where('task_name', '=', task)
    .where(sql<boolean>`status in ('completed', 'failed')`)
    .where(sql<boolean>`finished_at >= ${store.instant(from)} and finished_at < ${store.instant(to)}`)
    .groupBy(['status', sql`coalesce(failure_reason, '')`])
  const rows = await query.execute()
  return rows.map((row) => ({ task, ends: 'run', outcome: row.outcome, reason: row.reason, endings: Number(row.endings), seconds: Number(row.seconds ?? 0) }))
}

/** Attempts and launches of all tasks that came to nothing in `[from, to)`; one range of an index. */
export async function attemptEndings(store: Store, from: Date, to: Date): Promise<EndingTotal[]> {
  const query = store.db
    .selectFrom('task_attempts')
    .select(['task_name', 'outcome', sql<string>`coalesce(reason, '')`.as('reason'), sql<number | string>`count(*)`.as('endings')])
    .where(sql<boolean>`ended_at >= ${store.instant(from)} and ended_at < ${store.instant(to)}`)
    .groupBy(['task_name', 'outcome', sql`coalesce(reason, '')`])
  const rows = await query.execute()
  return rows.map((row) => ({ task: row.task_name, ends: 'attempt', outcome: row.outcome, reason: row.reason, endings: Number(row.endings), seconds: 0 }))
}

/** Adds what was counted and moves the mark. @returns false when another count was first: nothing was added then */
export async function addToTotals(store: Store, mark: Mark | null, before: Date, counted: readonly EndingTotal[]): Promise<boolean> {
  try {
    return await store.transaction(async (tx) => {
      if (!(await moveMark(store, tx, mark, before))) return false
      for (const total of counted) await add(tx, total)
      return true
    })
  } catch (error) {
    if (store.diagnose(error).kind === 'duplicate') return false
    throw error
  }
}

async function moveMark(store: Store, tx: Db, mark: Mark | null, before: Date): Promise<boolean> {
  const counted_before = store.instant(before)
  if (mark === null) {
    await tx.insertInto('task_totals').values({ task_name: MARK, ends: 'mark', outcome: '', reason: '', endings: 1n, seconds: 0, counted_before }).execute()
    return true
  }
  const { numUpdatedRows } = await tx
    .updateTable('task_totals')
    .set({ counted_before, endings: BigInt(mark.version + 1) })
    .where('task_name', '=', MARK)
    .where('endings', '=', BigInt(mark.version))
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

async function add(tx: Db, { task, ends, outcome, reason, endings, seconds }: EndingTotal): Promise<void> {
  const { numUpdatedRows } = await tx
    .updateTable('task_totals')
    .set({ endings: sql<bigint>`endings + ${BigInt(endings)}`, seconds: sql<number>`seconds + ${seconds}` })
    .where('task_name', '=', task)
    .where('ends', '=', ends)
    .where('outcome', '=', outcome)
    .where('reason', '=', reason)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) await tx.insertInto('task_totals').values({ task_name: task, ends, outcome, reason, endings: BigInt(endings), seconds }).execute()
}

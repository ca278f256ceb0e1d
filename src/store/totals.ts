/**
 * Endings counted once and kept, so that a count costs what is new, survives pruning and retries, and never falls:
 * `task_totals` holds all endings before its mark, which keeps a minute behind for those whose commit is under way.
 */
import { sql } from 'kysely'
import { addTotals, type EndingTotal, type Ends } from '../model/measures.ts'
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

/** Few enough that a database counts them within seconds, however cold its cache: the first count is of the whole history. */
const ENDINGS_AT_ONCE = 100_000

/** Runs of one task that ended in `[from, to)`, in one state: ranges of an index. */
export async function runEndings(store: Store, task: string, status: 'completed' | 'failed', from: Date, to: Date): Promise<EndingTotal[]> {
  const runs = store.db.selectFrom('task_runs').where('task_name', '=', task).where(sql<boolean>`status = ${sql.lit(status)}`)
  const ended = (since: Date, until: Date) => sql<boolean>`finished_at >= ${store.instant(since)} and finished_at < ${store.instant(until)}`
  return countInSlices(
    from,
    to,
    (since) => runs.select('finished_at as at').where(ended(since, to)).orderBy('finished_at').limit(1).offset(ENDINGS_AT_ONCE).executeTakeFirst().then((row) => store.readInstant(row?.at)),
    async (since, until) => {
      const rows = await runs
        .select([sql<string>`coalesce(failure_reason, '')`.as('reason'), sql<number | string>`count(*)`.as('endings')])
        .select(sql<number | null>`sum(${store.secondsBetween(sql.ref('started_at'), sql.ref('finished_at'))})`.as('seconds'))
        .where(ended(since, until))
        .groupBy(sql`coalesce(failure_reason, '')`)
        .execute()
      return rows.map((row) => ({ task, ends: 'run', outcome: status, reason: row.reason, endings: Number(row.endings), seconds: Number(row.seconds ?? 0) }))
    },
  )
}

/** Attempts and launches of all tasks that came to nothing in `[from, to)`: ranges of an index. */
export async function attemptEndings(store: Store, from: Date, to: Date): Promise<EndingTotal[]> {
  const attempts = store.db.selectFrom('task_attempts')
  const ended = (since: Date, until: Date) => sql<boolean>`ended_at >= ${store.instant(since)} and ended_at < ${store.instant(until)}`
  return countInSlices(
    from,
    to,
    (since) => attempts.select('ended_at as at').where(ended(since, to)).orderBy('ended_at').limit(1).offset(ENDINGS_AT_ONCE).executeTakeFirst().then((row) => store.readInstant(row?.at)),
    async (since, until) => {
      const rows = await attempts
        .select(['task_name', 'outcome', sql<string>`coalesce(reason, '')`.as('reason'), sql<number | string>`count(*)`.as('endings')])
        .where(ended(since, until))
        .groupBy(['task_name', 'outcome', sql`coalesce(reason, '')`])
        .execute()
      return rows.map((row) => ({ task: row.task_name, ends: 'attempt', outcome: row.outcome, reason: row.reason, endings: Number(row.endings), seconds: 0 }))
    },
  )
}

/** @param cut when the ending ENDINGS_AT_ONCE after that instant was; null when there are not so many left */
async function countInSlices(from: Date, to: Date, cut: (since: Date) => Promise<Date | null>, count: (since: Date, until: Date) => Promise<EndingTotal[]>): Promise<EndingTotal[]> {
  let totals: EndingTotal[] = []
  for (let since = from; since < to; ) {
    const end = await cut(since)
    const until = end !== null && end > since ? end : to
    totals = addTotals(totals, await count(since, until))
    since = until
  }
  return totals
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

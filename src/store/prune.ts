/** Takes finished runs away, a batch in a transaction of its own, in the order of their keys and past rows that others hold. */
import { sql, type RawBuilder } from 'kysely'
import { isOfOneRun } from '../model/effect.ts'
import { LedgerError } from '../model/errors.ts'
import { raiseFloor } from './fence.ts'
import type { FinalStatus } from './finished-runs.ts'
import type { Db, Store } from './tables.ts'

/** The runs of a batch, and what must still be true of each when it goes. */
export interface Batch {
  readonly task: string
  readonly status: FinalStatus
  readonly keys: readonly string[]
  /** They ended before it. */
  readonly before: Date
}

export interface Taken {
  readonly runs: number
  readonly attempts: number
  readonly effects: number
  /** Runs that stay since nobody knows whether an effect of theirs happened. */
  readonly inDoubt: number
}

/**
 * Bars the windows of a task that begin before `before`, for good: never lowers it. To be committed, and outwaited,
 * before any of these rows goes.
 */
export async function barBefore(store: Store, task: string, before: Date): Promise<void> {
  for (;;) {
    const { numUpdatedRows } = await store.statement((db) =>
      db
        .updateTable('tasks')
        .set({ pruned_before: sql`case when pruned_before > ${store.instant(before)} then pruned_before else ${store.instant(before)} end` })
        .where('task_name', '=', task)
        .executeTakeFirstOrThrow(),
    )
    if (numUpdatedRows === 1n) return
    try {
      await store.statement((db) => db.insertInto('tasks').values({ task_name: task, pruned_before: store.instant(before) }).execute())
      return
    } catch (error) {
      const diagnosis = store.diagnose(error)
      if (diagnosis.kind !== 'duplicate' || diagnosis.constraint !== 'primary') throw error
    }
  }
}

/** Deletes the runs, their attempts and conflicts, and their effects that are over. Effects with a business key stay. */
export function takeRuns(store: Store, batch: Batch): Promise<Taken> {
  return store.transaction(async (tx) => {
    const held = await stillFinished(store, tx, batch, 'locked')
    const { keys, inDoubt, effects } = await split(tx, held)
    if (keys.length === 0) return { runs: 0, attempts: 0, effects: 0, inDoubt }
    await keepFences(store, tx, keys)
    if (effects.length > 0) await store.deleteBy(tx, { table: 'task_effects', column: 'effect_key', index: 'primary', values: effects })
    const attempts = await store.deleteBy(tx, { table: 'task_attempts', column: 'task_key', index: 'task_attempts_task_key', values: keys })
    const runs = await store.deleteBy(tx, { table: 'task_runs', column: 'task_key', index: 'primary', values: keys })
    if (runs !== keys.length) throw new LedgerError('INTERNAL', `prune of ${batch.task} locked ${keys.length} runs and deleted ${runs}`, { task: batch.task })
    return { runs, attempts, effects: effects.length, inDoubt }
  })
}

/** What takeRuns would take; changes nothing. */
export async function countRuns(store: Store, batch: Batch): Promise<Taken> {
  const { db } = store
  const { keys, inDoubt, effects } = await split(db, await stillFinished(store, db, batch, 'read'))
  if (keys.length === 0) return { runs: 0, attempts: 0, effects: 0, inDoubt }
  const { attempts } = await db.selectFrom('task_attempts').select((eb) => eb.fn.countAll().as('attempts')).where('task_key', 'in', keys).executeTakeFirstOrThrow()
  return { runs: keys.length, attempts: Number(attempts), effects: effects.length, inDoubt }
}

/** Drops what the runs carry and nobody needs to have them done again: the payload of a failed one stays. @returns how many carried something */
export function takePayloads(store: Store, batch: Batch): Promise<number> {
  return store.transaction(async (tx) => {
    const keys = await stillFinished(store, tx, batch, 'locked')
    if (keys.length === 0) return 0
    const { numUpdatedRows } = await tx
      .updateTable('task_runs')
      .set({ output_tail: null, result: null, ...(batch.status === 'completed' && { payload: null }) })
      .where('task_key', 'in', keys)
      .where(carrying(batch.status))
      .executeTakeFirstOrThrow()
    await tx.updateTable('task_attempts').set({ output_tail: null }).where('task_key', 'in', keys).where('output_tail', 'is not', null).execute()
    return Number(numUpdatedRows)
  })
}

/** What takePayloads would change; changes nothing. */
export async function countPayloads(store: Store, { keys, status }: Batch): Promise<number> {
  if (keys.length === 0) return 0
  const { runs } = await store.db.selectFrom('task_runs').select((eb) => eb.fn.countAll().as('runs')).where('task_key', 'in', keys).where('status', '=', status).where(carrying(status)).executeTakeFirstOrThrow()
  return Number(runs)
}

function carrying(status: FinalStatus): RawBuilder<boolean> {
  return sql<boolean>`(output_tail is not null or result is not null ${status === 'completed' ? sql`or payload is not null` : sql``})`
}

async function stillFinished(store: Store, db: Db, { keys, status, before }: Batch, how: 'locked' | 'read'): Promise<string[]> {
  if (keys.length === 0) return []
  const query = db
    .selectFrom('task_runs')
    .select('task_key')
    .where('task_key', 'in', keys)
    .where('status', '=', status)
    .where(sql<boolean>`finished_at < ${store.instant(before)}`)
    .orderBy('task_key')
  const rows = await (how === 'locked' ? store.skipLocked(query) : query).execute()
  return rows.map(({ task_key }) => task_key)
}

/** Which of the runs may go, and which of their effects go with them. */
async function split(db: Db, held: readonly string[]): Promise<{ keys: string[]; inDoubt: number; effects: string[] }> {
  if (held.length === 0) return { keys: [], inDoubt: 0, effects: [] }
  const effects = await db.selectFrom('task_effects').select(['effect_key', 'task_key', 'status']).where('task_key', 'in', held).execute()
  const open = new Set(effects.filter(({ status }) => status === 'started' || status === 'in_doubt').map(({ task_key }) => task_key))
  const keys = held.filter((key) => !open.has(key))
  return { keys, inDoubt: open.size, effects: effects.filter(({ effect_key, task_key }) => isOfOneRun(effect_key) && !open.has(task_key)).map(({ effect_key }) => effect_key) }
}

/** Runs without a concurrency key count their fences within themselves: enqueued anew, such a key must begin above. */
async function keepFences(store: Store, tx: Db, keys: readonly string[]): Promise<void> {
  const { highest } = await tx.selectFrom('task_runs').select(sql<bigint | number | string | null>`max(fence)`.as('highest')).where(store.oneOf(sql.ref('task_key'), keys)).where('concurrency_key', 'is', null).where('window_start', 'is', null).executeTakeFirstOrThrow()
  if (highest !== null) await raiseFloor(tx, BigInt(highest))
}

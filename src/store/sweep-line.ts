/**
 * Finds runs that stand in the wrong place in line, a part of them at a time: those that wait behind a key that nobody
 * holds any more (a launch held it, its owner died, somebody typed an UPDATE), and pending ones that stand nowhere.
 */
import { sql } from 'kysely'
import { activeKeys, slotsOf } from './active-keys.ts'
import { inLine, isDueBy, isStill } from './line.ts'
import { lockFences } from './take-keyed.ts'
import type { Store } from './tables.ts'
import { headsOfLine, makeReady, type Head } from './tend-line.ts'

/** Where the next part begins; the first one at the beginning. */
export interface SweepCursor {
  readonly key: string
  /** The task whose strays come next, from that instant on; the first task after it, where there is none. */
  readonly task: string
  readonly availableAt: Date | null
}

export const SWEEP_START: SweepCursor = { key: '', task: '', availableAt: null }

const KEYS_A_SWEEP = 500
const RUNS_A_SWEEP = 500
const TASKS_A_SWEEP = 20

export interface Swept {
  readonly next: SweepCursor
  readonly madeReady: number
}

export async function sweepLine(store: Store, { key, task, availableAt }: SweepCursor): Promise<Swept> {
  const keys = await store.distinctAfter(store.db, { table: 'task_runs', column: 'waiting_key', after: key, limit: KEYS_A_SWEEP })
  const freed = await headsOfFreeKeys(store, keys)
  const strays = await readStrays(store, { task, availableAt })
  if (freed.length > 0) await store.transaction((tx) => lockFences(store, tx, freed.map((head) => head.key)).then(() => comeForwardAll(store, tx, freed)))
  if (strays.keys.length > 0) await store.statement((db) => db.updateTable('task_runs').set(inLine()).where(store.oneOf(sql.ref('task_key'), strays.keys)).where(isStill('pending')).where('ready_queue', 'is', null).where('waiting_key', 'is', null).where('due_at', 'is', null).execute())
  return { next: { key: keys.length < KEYS_A_SWEEP ? '' : keys.at(-1)!, ...strays.next }, madeReady: freed.length + strays.keys.length }
}

/** The heads of keys that have a free slot and nobody ready for it. */
async function headsOfFreeKeys(store: Store, keys: readonly string[], db = store.db): Promise<Head[]> {
  await ensureFences(store, keys)
  const heads = [...(await headsOfLine(store, db, keys)).values()].filter((head) => !head.isReady)
  const active = await activeKeys(store, db, heads)
  return heads.filter(({ key, limit }) => slotsOf(key, limit).some((slot) => !active.has(slot)))
}

/** A key that nobody has decided about yet has no fence to look it up by. */
async function ensureFences(store: Store, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  const known = await store.db.selectFrom('task_fences').select('scope').where(store.oneOf(sql.ref('scope'), keys)).execute()
  if (known.length < keys.length) await store.transaction((tx) => lockFences(store, tx, keys))
}

async function comeForwardAll(store: Store, tx: Parameters<typeof makeReady>[1], freed: readonly Head[]): Promise<void> {
  const active = await activeKeys(store, tx, freed)
  const still = freed.filter(({ key, limit }) => slotsOf(key, limit).some((slot) => !active.has(slot)))
  await makeReady(store, tx, still.map(({ taskKey }) => taskKey))
}

type StrayCursor = Pick<SweepCursor, 'task' | 'availableAt'>

/** Pending and due runs that are neither in line nor will be: what a hand-typed UPDATE leaves. One task after the other, as the index has them. */
async function readStrays(store: Store, from: StrayCursor): Promise<{ keys: string[]; next: StrayCursor }> {
  const keys: string[] = []
  let next = from
  for (let looked = 0, tasks = 0; looked < RUNS_A_SWEEP && tasks < TASKS_A_SWEEP; tasks++) {
    const task = next.availableAt ? next.task : await nextPending(store, next.task)
    if (task === null) return { keys, next: { task: '', availableAt: null } }
    const part = await readStraysOf(store, task, next.availableAt)
    keys.push(...part.keys)
    looked += part.looked
    next = { task, availableAt: part.next }
  }
  return { keys, next }
}

/** Of one task; `next` is null after its last one. */
async function readStraysOf(store: Store, task: string, after: Date | null): Promise<{ keys: string[]; looked: number; next: Date | null }> {
  let query = store.db
    .selectFrom('task_runs')
    .select(['task_key', 'available_at', 'ready_queue', 'waiting_key', 'due_at'])
    .where('status', '=', 'pending')
    .where('task_name', '=', task)
    .where(isDueBy(store, 'available_at'))
    .orderBy('available_at')
    .limit(RUNS_A_SWEEP)
  if (after) query = query.where(sql<boolean>`available_at >= ${store.instant(after)}`)
  const rows = await query.execute()
  const keys = rows.filter((row) => row.ready_queue === null && row.waiting_key === null && row.due_at === null).map((row) => row.task_key)
  const last = rows.length < RUNS_A_SWEEP ? null : store.readInstant(rows.at(-1)!.available_at)
  return { keys, looked: rows.length, next: last && after && last.getTime() === after.getTime() ? new Date(last.getTime() + 1) : last }
}

async function nextPending(store: Store, after: string): Promise<string | null> {
  const row = await store.db.selectFrom('task_runs').select('task_name').where('status', '=', 'pending').where('task_name', '>', after).orderBy('task_name').limit(1).executeTakeFirst()
  return row?.task_name ?? null
}

/**
 * Decides which of the runs first in line may be taken under their concurrency keys, and takes them.
 *
 * Whoever decides about a key, by taking or by closing, has its fence locked, and sees everything that was decided
 * before. The unique `active_key` stands behind that: a slot that somebody holds cannot be taken, whatever we believe.
 * A run whose key is busy leaves the index of what is ready, once, and comes back when a run of the key is closed.
 */
import { sql } from 'kysely'
import { FLOOR_SCOPE } from '../dialect/dialect.ts'
import type { Instance } from '../model/run.ts'
import { activeKeys, slotsOf } from './active-keys.ts'
import { ownedBy } from './claim.ts'
import { counterOf } from './fence.ts'
import { mustAllMove, readyHolder, type ReadyRow } from './ready-rows.ts'
import type { Db, Store } from './tables.ts'
import { headsOfLine, makeReady, park, readyBehind } from './tend-line.ts'
import { transitionMany } from './transition-batch.ts'

export interface TakeTerms {
  readonly leaseSeconds: number
  readonly instance: Instance
}

interface Slotted {
  readonly row: ReadyRow
  readonly slot: number
  readonly fence: bigint
}

export async function takeKeyed(store: Store, tx: Db, request: TakeTerms, rows: readonly ReadyRow[]): Promise<Slotted[]> {
  const byKey = Map.groupBy(rows, (row) => row.concurrency_key!)
  const counters = await lockFences(store, tx, [...byKey.keys()])
  const active = await activeKeys(store, tx, rows.map((row) => ({ key: row.concurrency_key!, limit: row.concurrency_limit })))
  const heads = await headsOfLine(store, tx, [...byKey.keys()].filter((key) => !active.has(key)))
  const [slotted, parked, late, lines]: [Slotted[], string[], string[], string[]] = [[], [], [], []]
  for (const [key, line] of byKey) {
    const head = heads.get(key)
    const mayGo = head === undefined || line.some((row) => row.task_key === head.taskKey) || line.some((row) => row.concurrency_limit > 1)
    if (!mayGo && !head.isReady) late.push(head.taskKey)
    if (!mayGo && head.isReady) continue // Somebody else is about to take the first in line; ours stay where they are.
    if (mayGo && line.length > 2 && line.every((row) => row.concurrency_limit === 1)) lines.push(key)
    let fence = counters.get(key)!
    for (const row of line) {
      const slot = mayGo ? slotsOf(key, row.concurrency_limit).findIndex((name) => !active.has(name)) : -1
      if (slot < 0) {
        parked.push(row.task_key)
        continue
      }
      fence = (fence < BigInt(row.fence) ? BigInt(row.fence) : fence) + 1n
      active.add(slotsOf(key, row.concurrency_limit)[slot]!)
      slotted.push({ row, slot: slot + 1, fence })
    }
    counters.set(key, fence)
  }
  await makeReady(store, tx, late)
  await park(store, tx, [...parked, ...(await readyBehind(store, tx, lines))])
  await take(store, tx, request, slotted)
  return slotted
}

/** In the order of the keys, so that two who decide about the same ones wait for each other instead of deadlocking. */
export async function lockFences(store: Store, tx: Db, keys: readonly string[]): Promise<Map<string, bigint>> {
  const scopes = keys.toSorted()
  const found = await selectLocked(store, tx, scopes)
  const missing = scopes.filter((scope) => !found.has(scope))
  if (missing.length === 0) return found
  const floor = await counterOf(tx, FLOOR_SCOPE)
  await store.insertAbsent(tx, { table: 'task_fences', key: 'scope', columns: [{ name: 'scope', type: 'text', values: missing }], once: { counter: sql`${sql.lit(Number(floor))}` }, insert: (pick) => ({ scope: pick('scope'), counter: pick('counter') }) })
  return new Map([...found, ...(await selectLocked(store, tx, missing))])
}

async function selectLocked(store: Store, tx: Db, scopes: readonly string[]): Promise<Map<string, bigint>> {
  const rows = await store.locked(tx.selectFrom('task_fences').select(['scope', 'counter']).where(store.oneOf(sql.ref('scope'), scopes)).orderBy('scope')).execute()
  return new Map(rows.map((row) => [row.scope, BigInt(row.counter)]))
}

/** The counters first; a run that is alone with its key in this batch reads its fence from there. */
async function take(store: Store, tx: Db, request: TakeTerms, slotted: readonly Slotted[]): Promise<void> {
  if (slotted.length === 0) return
  await raiseTo(store, tx, slotted)
  const counts = Map.groupBy(slotted, ({ row }) => row.concurrency_key!)
  const alone = slotted.filter(({ row, slot }) => slot === 1 && counts.get(row.concurrency_key!)!.length === 1)
  const others = slotted.filter((one) => !alone.includes(one))
  const owned = { ...ownedBy(store, request), attempt: sql<number>`attempt + 1` }
  const counter = sql<bigint>`(select counter from ${store.table('task_fences')} where scope = concurrency_key)`
  if (alone.length > 0) mustAllMove(await transitionMany(store, tx, { move: 'take', of: alone.map(({ row }) => readyHolder(row)), set: { ...owned, active_key: sql.ref('concurrency_key'), fence: counter } }), alone.map(({ row }) => row))
  for (const { row, slot, fence } of others) {
    mustAllMove(await transitionMany(store, tx, { move: 'take', of: [readyHolder(row)], set: { ...owned, active_key: slotsOf(row.concurrency_key!, slot).at(-1)!, fence } }), [row])
  }
}

async function raiseTo(store: Store, tx: Db, slotted: readonly Slotted[]): Promise<void> {
  const highest = new Map(slotted.map(({ row, fence }) => [row.concurrency_key!, fence]))
  const byFence = Map.groupBy(highest, ([, fence]) => fence)
  for (const [fence, scopes] of byFence) {
    await tx.updateTable('task_fences').set({ counter: fence }).where(store.oneOf(sql.ref('scope'), scopes.map(([scope]) => scope))).execute()
  }
}

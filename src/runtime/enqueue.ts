/** Enqueues runs: puts them in line in one commit or in the caller's, and tells the workers. */
import { setImmediate as turn } from 'node:timers/promises'
import type { CallerConnection } from '../dialect/caller-connection.ts'
import type { StandardSchema } from '../model/standard-schema.ts'
import { insertRuns } from '../store/enqueue.ts'
import type { Db, Store } from '../store/tables.ts'
import { checkPayload, type Plan } from './plan.ts'
import { settle } from './settle.ts'

export interface EnqueueTerms {
  /** A transaction of the caller's that is open on the ledger's database: the run is there when that commits. */
  readonly tx?: CallerConnection | undefined
}

/** What became of it. */
export interface Enqueued {
  readonly taskKey: string
  /** The key was there already (also if this very call put it there and the first answer was lost): nothing was changed. */
  readonly duplicate: boolean
}

/**
 * All of them or none: one transaction, of the caller's or our own.
 * @param hint hears of a queue that has something, once it is committed by us
 * @throws INVALID_OPTION, and nothing is enqueued; DATABASE_UNAVAILABLE
 */
export async function enqueueAll(store: Store, patienceMs: number, plan: Plan, schema: StandardSchema | undefined, { tx }: EnqueueTerms, hint: (queue: string) => void): Promise<Enqueued[]> {
  if (tx || schema) plan.finish() // What is refused is refused before anything is written into the caller's transaction.
  if (schema) for (const { payload } of plan.runs) await checkPayload(payload, schema)
  const there = tx ? await insertAndTell(store, await store.on(tx), plan) : await insertOwn(store, patienceMs, plan, hint)
  return plan.taskKeys.map((taskKey, nth) => ({ taskKey, duplicate: there.has(taskKey) || plan.repeats.has(nth) }))
}

async function insertAndTell(store: Store, db: Db, plan: Plan): Promise<Set<string>> {
  const there = await insertAll(store, db, plan)
  if (there.size < plan.size) for (const queue of plan.queues) await store.announce(queue, db)
  return there
}

/** Told after the commit: a notification within it would make the commits of all enqueuers wait for each other. */
async function insertOwn(store: Store, patienceMs: number, plan: Plan, hint: (queue: string) => void): Promise<Set<string>> {
  const insert = (uncertain: boolean) => (db: Db) => insertAll(store, db, plan, plan.ownKeys && !uncertain) // Or an earlier try has put them there.
  plan.parts().next() // A bad one among the first is refused before a database is asked for.
  const isOne = plan.runs.length === 1
  const there = await settle(store, patienceMs, (uncertain) => (isOne ? store.statement(insert(uncertain)) : store.transaction(insert(uncertain))))
  if (there.size === plan.size) return there
  for (const queue of plan.queues) hint(queue)
  for (const queue of plan.queues) await store.announce(queue).catch(() => {}) // A hint as well: the poll finds the runs.
  return there
}

/** While the database is at work on one part, the next is planned. @returns the keys that were there */
async function insertAll(store: Store, db: Db, plan: Plan, areNew = plan.ownKeys): Promise<Set<string>> {
  const there = new Set<string>()
  let inserting: Promise<string[]> = Promise.resolve([])
  try {
    for (const part of plan.parts()) {
      for (const key of await inserting) there.add(key)
      inserting = insertRuns(store, db, part, areNew)
      await Promise.race([inserting, turn()]) // On its way, before the next one is planned.
    }
    for (const key of await inserting) there.add(key)
    return there
  } finally {
    await inserting.catch(() => {}) // Already said, unless a plan has failed meanwhile; the connection is to be at rest.
  }
}

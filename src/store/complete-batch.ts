/** Completes many runs of one instance in one commit, and lets the next of their concurrency keys come forward in it. */
import { sql } from 'kysely'
import type { Holder } from '../model/run.ts'
import { isStill } from './line.ts'
import { lockFences } from './take-keyed.ts'
import { headsOfLine, makeReady } from './tend-line.ts'
import type { Db, Store } from './tables.ts'
import { isOneOf, transitionMany } from './transition-batch.ts'

export interface DoneRun extends Holder {
  readonly concurrencyKey: string | null
  /** JSON; null for none. */
  readonly result: string | null
}

/** So many results fit into one statement that names each of them. */
const RESULTS_A_STATEMENT = 100

/**
 * Of several attempts at one run, which the instance lost and took again before it could record them, only the last can
 * be its own still. @returns those that were not ours any more: nothing was recorded of them
 */
export async function completeMany(store: Store, done: readonly DoneRun[]): Promise<Set<DoneRun>> {
  const last = new Map<string, DoneRun>()
  for (const run of done) if ((last.get(run.taskKey)?.fence ?? -1n) < run.fence) last.set(run.taskKey, run)
  const lost = await completeOnce(store, [...last.values()])
  return new Set(done.filter((run) => lost.has(run) || last.get(run.taskKey) !== run))
}

/** @param done each run once */
async function completeOnce(store: Store, done: readonly DoneRun[]): Promise<Set<DoneRun>> {
  const keys = [...new Set(done.flatMap(({ concurrencyKey }) => concurrencyKey ?? []))]
  if (keys.length === 0) return store.statement((db) => completeAll(store, db, done))
  return store.transaction(async (tx) => {
    await lockFences(store, tx, keys)
    const lost = await completeAll(store, tx, done)
    await comeForward(store, tx, keys)
    return lost
  })
}

/** After runs of these keys were closed in another way: the next of each comes forward, if it has not. */
export async function freeKeys(store: Store, keys: readonly string[]): Promise<void> {
  await store.transaction(async (tx) => {
    await lockFences(store, tx, keys)
    await comeForward(store, tx, keys)
  })
}

/** The first that waits behind each of these keys becomes ready; to be called with the fences of the keys locked. */
export async function comeForward(store: Store, tx: Db, keys: readonly string[]): Promise<void> {
  const heads = await headsOfLine(store, tx, keys, true)
  await makeReady(store, tx, [...heads.values()].map(({ taskKey }) => taskKey))
}

async function completeAll(store: Store, db: Db, done: readonly DoneRun[]): Promise<Set<DoneRun>> {
  const [plain, withResult] = [done.filter(({ result }) => result === null), done.filter(({ result }) => result !== null)]
  const lost = new Set<DoneRun>()
  for (const part of [plain, ...partsOf(withResult)]) {
    if (part.length === 0) continue
    const moved = await transitionMany(store, db, { move: 'complete', of: part, set: part[0]!.result === null ? {} : { result: resultOf(store, part) } })
    if (moved < part.length) for (const run of await notCompleted(store, db, part)) lost.add(run)
  }
  return lost
}

function* partsOf(done: readonly DoneRun[]): Iterable<readonly DoneRun[]> {
  for (let at = 0; at < done.length; at += RESULTS_A_STATEMENT) yield done.slice(at, at + RESULTS_A_STATEMENT)
}

function resultOf(store: Store, done: readonly DoneRun[]) {
  return store.asJson(sql`case task_key ${sql.join(done.map(({ taskKey, result }) => sql`when ${taskKey} then ${result}`), sql` `)} end`)
}

/** Which of them are not completed by this very attempt; what an earlier write completed, whose answer was lost, is. */
async function notCompleted(store: Store, db: Db, done: readonly DoneRun[]): Promise<DoneRun[]> {
  const rows = await db.selectFrom('task_runs').select('task_key').where(isOneOf(store, done)).where(isStill('completed')).where('instance_id', '=', done[0]!.instanceId).execute()
  const completed = new Set(rows.map((row) => row.task_key))
  return done.filter(({ taskKey }) => !completed.has(taskKey))
}

/**
 * Takes what is ready in a queue, many runs in one short transaction: those first in line whose rows nobody has locked.
 *
 * Runs with a concurrency key are decided one key after the other in store/take-keyed.ts; the others need nobody's leave.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Holder } from '../model/run.ts'
import { ownedBy } from './claim.ts'
import { readBars, readyQuery, type Place, type ReadyQuery, type ReadyRow } from './ready-rows.ts'
import { takeKeyed, type TakeTerms } from './take-keyed.ts'
import type { Store } from './tables.ts'
import type { Changes } from './transition.ts'
import { takeReady } from './transition-batch.ts'

export interface TakeRequest extends ReadyQuery, TakeTerms {}

/** A run in our hands, with all that its handler needs. */
export interface TakenRun extends Holder {
  readonly task: string
  readonly window: { readonly start: Date; readonly end: Date; readonly zone: string } | null
  readonly concurrencyKey: string | null
  readonly maxAttempts: number
  /** Null when a failure is final. */
  readonly backoffSeconds: number | null
  readonly timeoutSeconds: number | null
  readonly payload: string | null
}

export interface Taken {
  readonly runs: TakenRun[]
  /** How many were first in line, ours or not: as many as asked for means that there may be more. */
  readonly seen: number
  /** The last of those. */
  readonly last: Place | undefined
}

export async function takeBatch(store: Store, request: TakeRequest): Promise<Taken> {
  return store.transaction(async (tx) => {
    const { floor, bars } = await readBars(store, tx, request.tasks)
    const query = readyQuery(store, request, bars)
    if (!query) return { runs: [], seen: 0, last: undefined }
    const rows = await takeReady(store, tx, query, taken(store, request, sql`${floor}`))
    const keyed = rows.filter((row) => row.concurrency_key !== null)
    const slotted = new Map((keyed.length === 0 ? [] : await takeKeyed(store, tx, request, keyed)).map(({ row, fence }) => [row, fence]))
    const runs = rows.flatMap((row) => {
      const fence = row.concurrency_key === null ? nextFence(row, floor) : slotted.get(row)
      return fence === undefined ? [] : [takenOf(store, request, row, fence)]
    })
    return { runs, seen: rows.length, last: rows.at(-1) }
  })
}

/** What changes in the row of a run without a concurrency key. */
export function taken(store: Store, request: Pick<TakeRequest, 'instance' | 'leaseSeconds'>, floor: RawBuilder<unknown>): Changes {
  return {
    ...ownedBy(store, request),
    active_key: null,
    attempt: sql`attempt + 1`,
    // It counts within the run: from its own on, or from the floor that a bump has raised.
    fence: sql`case when fence < ${floor} then ${floor} else fence end + 1`,
  }
}

export function nextFence(row: Pick<ReadyRow, 'fence'>, floor: bigint): bigint {
  const own = BigInt(row.fence)
  return (own < floor ? floor : own) + 1n
}

export function takenOf(store: Store, { instance }: TakeRequest, row: ReadyRow, fence: bigint): TakenRun {
  const [start, end] = [store.readInstant(row.window_start), store.readInstant(row.window_end)]
  return {
    taskKey: row.task_key,
    instanceId: instance.id,
    attempt: row.attempt + 1,
    fence,
    task: row.task_name,
    window: start && end ? { start, end, zone: row.window_zone ?? 'UTC' } : null,
    concurrencyKey: row.concurrency_key,
    maxAttempts: row.max_attempts,
    backoffSeconds: row.backoff_seconds,
    timeoutSeconds: row.timeout_seconds,
    payload: row.payload,
  }
}

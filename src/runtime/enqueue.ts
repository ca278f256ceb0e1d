/** Enqueues runs: checks them at the door, puts them in line in one commit or in the caller's, and tells the workers. */
import { randomBytes } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import type { CallerConnection } from '../dialect/caller-connection.ts'
import { durationMs, type Duration } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import { jsonColumn, MAX_PAYLOAD_BYTES } from '../model/json-value.ts'
import { checkConcurrencyKey, checkQueueName, checkTaskName, taskKey } from '../model/names.ts'
import { DEFAULT_MAX_ATTEMPTS, retryTerms } from '../model/retry.ts'
import { validate, type StandardSchema } from '../model/standard-schema.ts'
import { insertRuns, type NewRun } from '../store/enqueue.ts'
import { DEFAULT_QUEUE } from '../store/line.ts'
import type { Db, Store } from '../store/tables.ts'
import { settle } from './settle.ts'

export interface EnqueueOptions<Payload = unknown> {
  /** The business key, such as `order-42`: enqueued again it is a duplicate, whatever became of the run. Without it every call is a run of its own. */
  readonly key?: string | undefined
  /** What the handler gets: anything that JSON says without loss, at most 1 MiB. */
  readonly payload?: Payload | undefined
  /** Default `default`. Work that different workers do belongs in queues of its own. */
  readonly queue?: string | undefined
  /** Lower first; -32768 to 32767. Default 0. */
  readonly priority?: number | undefined
  /** Not before this instant, or this long from now on the database's clock. */
  readonly availableAt?: Date | Duration | undefined
  /** At most one run with the key is processing, of whatever task; or at most `limit` of them. */
  readonly concurrencyKey?: string | { readonly key: string; readonly limit: number } | undefined
  /** Attempts in all, failed and lost ones. Default 3. */
  readonly maxAttempts?: number | undefined
  /** The pause before the second attempt, doubled for each further one. Default 10 s. */
  readonly backoff?: Duration | undefined
  /** How long one attempt may take. */
  readonly timeout?: Duration | undefined
}

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

/** Rows and bytes of one statement. */
const MAX_ROWS = 1000
const MAX_BYTES = 2 * 1024 * 1024
const MAX_LIMIT = 100

/**
 * All of them or none: one transaction, of the caller's or our own.
 * @throws INVALID_OPTION before anything is written; DATABASE_UNAVAILABLE
 */
export async function enqueueAll(store: Store, patienceMs: number, runs: readonly NewRun[], { tx }: EnqueueTerms): Promise<Enqueued[]> {
  const parts = partsOf(distinct(runs))
  const queues = [...new Set(runs.map(({ queue }) => queue))]
  const insert = async (db: Db) => {
    const added = new Set<string>()
    for (const part of parts) for (const key of await insertRuns(store, db, part)) added.add(key)
    return added
  }
  const added = tx ? await insertAndTell(store, await store.on(tx), insert, queues) : await insertOwn(store, patienceMs, parts, insert, queues)
  return runs.map(({ taskKey }) => ({ taskKey, duplicate: !added.delete(taskKey) }))
}

async function insertAndTell(store: Store, db: Db, insert: (db: Db) => Promise<Set<string>>, queues: readonly string[]): Promise<Set<string>> {
  const added = await insert(db)
  if (added.size > 0) for (const queue of queues) await store.announce(queue, db)
  return added
}

/** Told after the commit: a notification within it would make the commits of all enqueuers wait for each other. */
async function insertOwn(store: Store, patienceMs: number, parts: readonly NewRun[][], insert: (db: Db) => Promise<Set<string>>, queues: readonly string[]): Promise<Set<string>> {
  const isOne = parts.length === 1 && parts[0]!.length === 1
  const added = await settle(store, patienceMs, () => (isOne ? store.statement(insert) : store.transaction(insert)))
  if (added.size > 0) for (const queue of queues) await store.announce(queue).catch(() => {}) // A hint: the poll finds the runs.
  return added
}

function distinct(runs: readonly NewRun[]): NewRun[] {
  const first = new Map<string, NewRun>()
  for (const run of runs) if (!first.has(run.taskKey)) first.set(run.taskKey, run)
  return [...first.values()]
}

function partsOf(runs: readonly NewRun[]): NewRun[][] {
  const parts: NewRun[][] = []
  let bytes = Infinity
  for (const run of runs) {
    const size = run.payload?.length ?? 0
    if (bytes + size > MAX_BYTES || parts.at(-1)!.length === MAX_ROWS) {
      parts.push([])
      bytes = 0
    }
    parts.at(-1)!.push(run)
    bytes += size
  }
  return parts
}

/** @throws INVALID_OPTION naming the option */
export async function planRun(task: string, options: EnqueueOptions, schema: StandardSchema | undefined): Promise<NewRun> {
  const { key, queue = DEFAULT_QUEUE, priority = 0, concurrencyKey, maxAttempts = DEFAULT_MAX_ATTEMPTS, backoff, timeout } = options
  const retry = retryTerms(maxAttempts, backoff)
  return {
    taskKey: taskKey(checkTaskName(task), key ?? newKey()),
    task,
    queue: checkQueueName(queue),
    priority: wholeNumber('priority', priority, -32768, 32767),
    availableAt: dueOf(options.availableAt),
    ...concurrencyOf(concurrencyKey),
    maxAttempts: retry.maxAttempts,
    backoffSeconds: retry.backoffMs / 1000,
    timeoutSeconds: timeout === undefined ? null : durationMs('timeout', timeout) / 1000,
    payload: await payloadText(options.payload, schema),
  }
}

/** Random bytes by the thousand: asked for sixteen at a time they cost more than the rest of an enqueue. */
let random = new Uint8Array()
let used = 0

/** Ordered by time, so that the newest keys stand together in the index. */
function newKey(): string {
  if (used + 16 > random.length) {
    random = randomBytes(16_384)
    used = 0
  }
  used += 16
  return uuidv7({ random: random.subarray(used - 16, used) })
}

function concurrencyOf(wanted: EnqueueOptions['concurrencyKey']): Pick<NewRun, 'concurrencyKey' | 'concurrencyLimit'> {
  if (wanted === undefined) return { concurrencyKey: null, concurrencyLimit: 1 }
  const { key, limit } = typeof wanted === 'string' ? { key: wanted, limit: 1 } : wanted
  return { concurrencyKey: checkConcurrencyKey(key), concurrencyLimit: wholeNumber('concurrency-limit', limit, 1, MAX_LIMIT) }
}

/** Years that every database has. */
const [FIRST, LAST] = [Date.UTC(1970, 0, 1), Date.UTC(9999, 0, 1)]

function dueOf(availableAt: Date | Duration | undefined): NewRun['availableAt'] {
  if (availableAt === undefined) return null
  if (!(availableAt instanceof Date)) return durationMs('available-at', availableAt, { zero: true }) / 1000 || null
  const ms = availableAt.getTime()
  if (!(ms >= FIRST && ms < LAST)) throw invalidOption('available-at', 'must be an instant from 1970 to 9998')
  return availableAt
}

function wholeNumber(option: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) throw invalidOption(option, `must be a whole number from ${min} to ${max}, got ${String(value)}`)
  return value
}

async function payloadText(payload: unknown, schema: StandardSchema | undefined): Promise<string | null> {
  const json = jsonColumn(payload, MAX_PAYLOAD_BYTES)
  if ('problem' in json) throw invalidOption('payload', json.problem)
  if (schema) {
    const checked = await validate(schema, payload)
    if ('problem' in checked) throw invalidOption('payload', checked.problem)
  }
  return json.text
}

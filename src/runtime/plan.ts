/** What is to be enqueued, checked at the door and planned a part at a time. */
import { randomBytes } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { durationMs, type Duration } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import { jsonColumn, MAX_PAYLOAD_BYTES } from '../model/json-value.ts'
import { checkConcurrencyKey, checkQueueName, checkTaskName, taskKey } from '../model/names.ts'
import { DEFAULT_MAX_ATTEMPTS, retryTerms } from '../model/retry.ts'
import { validate, type StandardSchema } from '../model/standard-schema.ts'
import type { NewRun } from '../store/enqueue.ts'
import { DEFAULT_QUEUE } from '../store/line.ts'

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

/** Rows and bytes of one statement. */
const MAX_ROWS = 1000
const MAX_BYTES = 2 * 1024 * 1024
const MAX_LIMIT = 100

/** The runs of one call. They are planned while their parts are gone through, each once, however often that is. */
export class Plan {
  readonly task: string
  readonly runs: readonly EnqueueOptions[]
  /** Of those planned so far, in their order. */
  readonly taskKeys: string[] = []
  /** Which of them have the key of one before. */
  readonly repeats = new Set<number>()
  readonly queues = new Set<string>()
  /** Every run gets a key of its own, made for it. */
  readonly ownKeys: boolean
  readonly #named = new Set<string>()
  readonly #parts: NewRun[][] = []

  /** @throws INVALID_OPTION */
  constructor(task: string, runs: readonly EnqueueOptions[]) {
    this.task = checkTaskName(task)
    this.runs = runs
    this.ownKeys = runs.every(({ key }) => key === undefined)
  }

  /** How many different ones. */
  get size(): number {
    return this.taskKeys.length - this.repeats.size
  }

  /** Each few enough for one statement. @throws INVALID_OPTION */
  *parts(): Generator<readonly NewRun[], void> {
    for (let nth = 0; nth < this.#parts.length || this.taskKeys.length < this.runs.length; nth++) yield (this.#parts[nth] ??= this.#planPart())
  }

  /** @throws INVALID_OPTION */
  finish(): void {
    for (const _ of this.parts()) continue
  }

  #planPart(): NewRun[] {
    const part: NewRun[] = []
    for (let bytes = 0; part.length < MAX_ROWS && bytes < MAX_BYTES && this.taskKeys.length < this.runs.length; ) {
      const run = planRun(this.task, this.runs[this.taskKeys.length]!)
      if (!this.#isRepeat(run)) part.push(run)
      this.taskKeys.push(run.taskKey)
      this.queues.add(run.queue)
      bytes += run.payload?.length ?? 0
    }
    return part
  }

  #isRepeat({ taskKey }: NewRun): boolean {
    const nth = this.taskKeys.length
    if (this.runs[nth]!.key === undefined) return false
    if (this.#named.has(taskKey)) this.repeats.add(nth)
    this.#named.add(taskKey)
    return this.repeats.has(nth)
  }
}

/** @throws INVALID_OPTION naming the option */
function planRun(task: string, options: EnqueueOptions): NewRun {
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
    payload: payloadText(options.payload),
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

function payloadText(payload: unknown): string | null {
  const json = jsonColumn(payload, MAX_PAYLOAD_BYTES)
  if ('problem' in json) throw invalidOption('payload', json.problem)
  return json.text
}

/** @throws INVALID_OPTION */
export async function checkPayload(payload: unknown, schema: StandardSchema): Promise<void> {
  const checked = await validate(schema, payload)
  if ('problem' in checked) throw invalidOption('payload', checked.problem)
}

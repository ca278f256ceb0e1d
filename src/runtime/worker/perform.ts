/** One run from its handler's first to its last word, and what is recorded of it. */
import { isLedgerError, LedgerError } from '../../model/errors.ts'
import { jsonColumn, jsonValue, MAX_RESULT_BYTES } from '../../model/json-value.ts'
import { validate, type StandardSchema } from '../../model/standard-schema.ts'
import type { FailureReason } from '../../model/states.ts'
import type { Completer } from './completer.ts'
import type { Tell } from './events.ts'
import { STOPPING, type WorkRun } from './work-run.ts'

/** What it returns is recorded as the run's result; what it throws makes the attempt fail. */
// eslint-disable-next-line typescript/no-explicit-any -- the payload is the caller's
export type Handler<Payload = any, Result = unknown> = (payload: Payload, run: WorkRun) => Promise<Result> | Result

export interface Performance {
  readonly handler: Handler
  readonly schema: StandardSchema | undefined
  readonly completer: Completer
  readonly tell: Tell
  /** For runs that bring none of their own. */
  readonly timeoutMs: number | null
  /** After its signal aborted, a handler has this long to end by itself. */
  readonly graceMs: number
}

/** Timers beyond 2^31 - 1 ms fire at once; nobody has ever waited for one of 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export type PerformEnd = 'over' | 'abandoned'

/**
 * @returns when the handler is over, and its failure recorded; a completion is recorded by the completer.
 *   `abandoned`: it did not heed its signal, and goes on without a run
 */
export async function perform(run: WorkRun, performance: Performance): Promise<PerformEnd> {
  const { tell } = performance
  tell({ event: 'started', run })
  const input = performance.schema ? await validPayload(run, performance.schema) : readPayload(run)
  if ('problem' in input) return await recordFailure(run, tell, 'error', new Error(`the payload was refused: ${input.problem}`), true)
  const end = await workUntil(run, input.value, performance)
  if (run.isClosedByHandler) run.close()
  else if (run.isLost) loseRun(run, tell)
  else if (end.how === 'stopped') await giveBack(run, tell)
  else if (end.how === 'timeout') await recordFailure(run, tell, 'timeout', new Error(`the handler ran longer than its ${end.timeoutMs} ms`))
  else if (end.how === 'thrown') await recordFailure(run, tell, 'error', end.error)
  else if (run.isWithData) await confirm(run, tell)
  else complete(run, end.value, performance)
  return end.abandoned ? 'abandoned' : 'over'
}

type Input = { readonly value: unknown } | { readonly problem: string }

function readPayload(run: WorkRun): Input {
  try {
    return { value: jsonValue(run.taken.payload) }
  } catch (error) {
    return { problem: problemOf(error) }
  }
}

async function validPayload(run: WorkRun, schema: StandardSchema): Promise<Input> {
  const read = readPayload(run)
  if ('problem' in read) return read
  return validate(schema, read.value).catch((error: unknown) => ({ problem: problemOf(error) }))
}

function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

type HandlerEnd = { readonly abandoned: boolean } & (
  | { readonly how: 'returned'; readonly value: unknown }
  | { readonly how: 'thrown'; readonly error: unknown }
  | { readonly how: 'timeout'; readonly timeoutMs: number }
  | { readonly how: 'stopped' }
)

/** Waits for the handler; once its signal has aborted, for no longer than the grace. */
async function workUntil(run: WorkRun, payload: unknown, { handler, timeoutMs, graceMs }: Performance): Promise<HandlerEnd> {
  const { timeoutSeconds } = run.taken
  const limitMs = timeoutSeconds === null ? timeoutMs : timeoutSeconds * 1000
  const timeIsOver = limitMs === null ? null : new Error(`the run's time of ${limitMs} ms is over`)
  const timer = limitMs === null ? undefined : setTimeout(() => run.stop(timeIsOver!), Math.min(limitMs, LONGEST_TIMER_MS))
  const end = await endOf(run, payload, handler, graceMs)
  clearTimeout(timer)
  const abandoned = end === 'abandoned'
  if (end !== 'abandoned' && end.how === 'returned') return { ...end, abandoned } // Whatever it was told meanwhile: the work is done.
  const told = run.isStopped ? run.signal.reason : null
  if (told === STOPPING) return { how: 'stopped', abandoned }
  if (told !== null && told === timeIsOver) return { how: 'timeout', timeoutMs: limitMs!, abandoned }
  return end === 'abandoned' ? { how: 'thrown', error: told, abandoned } : { ...end, abandoned }
}

type OwnEnd = { readonly how: 'returned'; readonly value: unknown } | { readonly how: 'thrown'; readonly error: unknown }

/** One promise for both ends: with a race of two, half of a short job's time went into it. */
function endOf(run: WorkRun, payload: unknown, handler: Handler, graceMs: number): Promise<OwnEnd | 'abandoned'> {
  return new Promise((resolve) => {
    run.whenStopped(() => setTimeout(resolve, graceMs, 'abandoned').unref())
    const thrown = (error: unknown) => resolve({ how: 'thrown', error })
    try {
      const result = handler(payload, run)
      if (isThenable(result)) result.then((value) => resolve({ how: 'returned', value }), thrown)
      else resolve({ how: 'returned', value: result })
    } catch (error) {
      thrown(error)
    }
  })
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'
}

function complete(run: WorkRun, value: unknown, { completer, tell }: Performance): void {
  const json = jsonColumn(value, MAX_RESULT_BYTES)
  const problem = 'problem' in json ? `the result is not recorded: ${json.problem}` : undefined
  const closed = (recorded: boolean, error?: unknown) => {
    if (recorded) tell({ event: 'completed', run, ...(problem !== undefined && { problem }) })
    else tell({ event: 'lost', run, error: error ?? new LedgerError('LEASE_LOST', `${run.taskKey} attempt ${run.attempt} is not held by this worker any more; nothing was recorded`, { taskKey: run.taskKey, attempt: run.attempt, fence: run.fence }) })
    run.close(true)
  }
  const { taskKey, instanceId, attempt, fence, concurrencyKey } = run.taken
  completer.add({ taskKey, instanceId, attempt, fence, concurrencyKey, result: 'problem' in json ? null : json.text, closed })
}

/** After claim.transaction or completeIn: a COMMIT of the caller's that failed leaves the run uncompleted. */
async function confirm(run: WorkRun, tell: Tell): Promise<void> {
  if (await run.claim.isCompleted()) tell({ event: 'completed', run })
  else if (!run.isLost) return void (await recordFailure(run, tell, 'error', new Error('the transaction that was to complete the run was not committed')))
  else return loseRun(run, tell)
  run.close()
}

function loseRun(run: WorkRun, tell: Tell): void {
  tell({ event: 'lost', run, error: run.signal.reason })
  run.close()
}

async function recordFailure(run: WorkRun, tell: Tell, reason: FailureReason, error: unknown, final = false): Promise<PerformEnd> {
  try {
    const { retryInMs, cancelled } = await run.claim.fail(error, { reason, final })
    tell({ event: 'failed', run, reason: cancelled ? 'cancelled' : reason, error, retryInMs })
  } catch (lost) {
    if (!isLedgerError(lost) || lost.code !== 'LEASE_LOST') throw lost
    tell({ event: 'lost', run, error: Object.assign(lost, { cause: error }) })
  }
  run.close()
  return 'over'
}

async function giveBack(run: WorkRun, tell: Tell): Promise<void> {
  try {
    await run.claim.release({ error: 'the worker was told to stop' })
    tell({ event: 'released', run })
  } catch (error) {
    if (!isLedgerError(error) || error.code !== 'LEASE_LOST') throw error
    tell({ event: 'lost', run, error })
  }
  run.close()
}

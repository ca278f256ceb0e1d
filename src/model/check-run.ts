/** What a run's row and its lines of history must say together; every contradiction is a finding. */
import type { Finding } from './finding.ts'
import { ATTEMPT_OUTCOMES, FAILURE_REASONS, STATUSES } from './states.ts'

export interface RunFacts {
  readonly taskKey: string
  readonly task: string
  readonly status: string
  readonly attempt: number
  readonly maxAttempts: number
  readonly fence: bigint
  readonly activeKey: string | null
  readonly concurrencyKey: string | null
  readonly failureReason: string | null
  readonly isOwned: boolean
  readonly windowStart: Date | null
  readonly windowEnd: Date | null
  readonly windowZone: string | null
  readonly finishedAt: Date | null
  readonly createdAt: Date
}

/** A line that is no conflict, in the order they were written. */
export interface AttemptLine {
  readonly attempt: number | null
  readonly outcome: string
  readonly fence: bigint | null
}

type Say = (promise: number, problem: string) => void

export function checkRun(run: RunFacts, lines: readonly AttemptLine[]): Finding[] {
  const findings: Finding[] = []
  const say: Say = (promise, problem) => void findings.push({ promise, task: run.task, key: run.taskKey, problem })
  checkState(run, say)
  checkWindow(run, say)
  checkAttempts(run, lines, say)
  checkFences(run, lines, say)
  return findings
}

/** What the CHECKs of the schema say, for where they were switched off. */
function checkState({ status, finishedAt, failureReason, activeKey, concurrencyKey, isOwned }: RunFacts, say: Say): void {
  const isOver = status === 'completed' || status === 'failed'
  if (!STATUSES.some((known) => known === status)) say(8, `is in the unknown state ${JSON.stringify(status)}`)
  if (isOver !== (finishedAt !== null)) say(8, isOver ? `is ${status} without an end` : `is ${status} and has an end, ${finishedAt!.toISOString()}`)
  if ((status === 'failed') !== (failureReason !== null)) say(8, status === 'failed' ? 'failed without a reason' : `is ${status} with a reason to have failed, ${failureReason}`)
  if (failureReason !== null && !FAILURE_REASONS.some((known) => known === failureReason)) say(8, `failed for the unknown reason ${JSON.stringify(failureReason)}`)
  if (status === 'processing' && !isOwned) say(3, 'is processing without owner, heartbeat or lease')
  if (status === 'processing' && concurrencyKey !== null && activeKey === null) say(3, `is processing without holding its concurrency key ${concurrencyKey}`)
  if (status !== 'processing' && activeKey !== null) say(3, `is ${status} and still holds ${activeKey}`)
}

function checkWindow({ windowStart: start, windowEnd: end, windowZone: zone }: RunFacts, say: Say): void {
  if (start === null && end === null && zone === null) return
  if (start === null || end === null || zone === null) say(8, 'has a part of a window')
  else if (start >= end) say(8, `its window ends (${end.toISOString()}) before it begins (${start.toISOString()})`)
}

/**
 * Attempts are numbered 1, 2, 3…; `released` gives its number back, and a `cancelled` line that ended no attempt bears
 * the number of the last one.
 */
function checkAttempts(run: RunFacts, lines: readonly AttemptLine[], say: Say): void {
  let last = 0
  for (const { attempt, outcome } of lines) {
    if (attempt === null) continue // Its own finding; see checkLine.
    const isAnother = outcome === 'cancelled' ? attempt === last + 1 || attempt === last : attempt === last + 1
    if (!isAnother) say(7, attempt <= last ? `attempt ${attempt} (${outcome}) is there again after attempt ${last}` : `attempt ${last + 1} is missing before attempt ${attempt} (${outcome})`)
    if (outcome !== 'released') last = Math.max(last, attempt)
  }
  if (run.attempt > run.maxAttempts) say(7, `attempt ${run.attempt} of at most ${run.maxAttempts}`)
  if (run.status === 'completed' && last >= run.attempt) say(1, `is completed by attempt ${run.attempt}, and attempt ${last} ended later`)
  else {
    const expected = run.status === 'processing' || run.status === 'completed' ? last + 1 : last
    if (run.attempt !== expected) say(7, `is ${run.status} in attempt ${run.attempt}, and by its history in attempt ${expected}`)
  }
}

function checkFences(run: RunFacts, lines: readonly AttemptLine[], say: Say): void {
  let last = 0n
  for (const { fence, outcome, attempt } of lines) {
    if (fence === null || fence === 0n) continue
    if (fence < last || (fence === last && outcome !== 'cancelled')) say(5, `attempt ${attempt} (${outcome}) has fence ${fence}, after ${last}`)
    if (fence > last) last = fence
  }
  const isNew = run.status === 'processing' || run.status === 'completed'
  if (run.fence < last || (isNew && lines.length > 0 && run.fence === last)) say(5, `has fence ${run.fence}, and an earlier attempt had ${last}`)
}

/** Every line of task_attempts by itself. @param hasRun whether its key has a row in task_runs */
export function checkLine(line: AttemptLine & { readonly taskKey: string; readonly task: string; readonly reason: string | null }, hasRun: boolean): Finding[] {
  const findings: Finding[] = []
  const say: Say = (promise, problem) => void findings.push({ promise, task: line.task, key: line.taskKey, problem })
  if (line.outcome === 'conflict') {
    if (line.attempt !== null || line.fence !== null) say(11, `a launch that lost counts as attempt ${line.attempt ?? '?'} with fence ${line.fence ?? '?'}`)
    if (line.reason === null) say(11, 'a launch lost without a reason')
    return findings
  }
  if (!ATTEMPT_OUTCOMES.some((known) => known === line.outcome)) say(8, `an attempt ended in the unknown way ${JSON.stringify(line.outcome)}`)
  if (line.attempt === null) say(7, `an attempt that ${line.outcome} has no number`)
  if (!hasRun) say(8, `attempt ${line.attempt ?? '?'} ${line.outcome}, and its run is gone`)
  return findings
}

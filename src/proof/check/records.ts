/** What the tables say, against what the processes were told: rows, attempts, acknowledgements, conflicts. */
import type { HistoryLine, Run } from '../../index.ts'
import type { Evidence } from '../evidence.ts'
import { Look, type Verdict } from '../promises.ts'
import type { Operation } from '../read-history.ts'
import { acceptedWrites, byFence, describe, wasAsked, type Tenure } from '../tenures.ts'

const COUNTED = new Set(['failed', 'lost', 'cancelled', 'reopened', 'processing', 'completed'])

export function checkRecords(evidence: Evidence): Verdict[] {
  return [oneRun(evidence), recordedConflicts(evidence), recovery(evidence), attempts(evidence), durable(evidence), conflicts(evidence)]
}

function oneRun({ runs, tenures }: Evidence): Verdict {
  const look = new Look('one-run')
  for (const [key, rows] of Map.groupBy(runs, ({ taskKey }) => taskKey)) look.that(rows.length === 1, () => `${key} has ${rows.length} rows`)
  for (const [key, ofKey] of Map.groupBy(tenures, ({ key }) => key)) {
    const completed = ofKey.flatMap((tenure) => acceptedWrites(tenure).filter(({ did }) => did === 'complete'))
    look.that(completed.length <= 1, () => `${key} was completed ${completed.length} times`)
    const over = completed[0]?.endedAt ?? Infinity
    const last = ofKey.find((tenure) => acceptedWrites(tenure).some(({ did }) => did === 'complete'))
    for (const tenure of ofKey) look.that(tenure.claim.invokedAt < over && (last === undefined || tenure.fence <= last.fence), () => `${describe(tenure)} was claimed after the run was completed`)
  }
  return look.verdict()
}

/** Every launch that was told of a conflict has its line. */
function recordedConflicts({ operations, lines }: Evidence): Verdict {
  const look = new Look('one-winner')
  for (const [name, told] of Map.groupBy(operations.filter(isConflict), launcherOf)) {
    const [{ facts }] = told as [Operation]
    const recorded = conflictLines(lines, facts).filter(({ reason }) => reason === facts['reason']).length
    look.that(recorded >= told.length, () => `${name}: ${told.length} launches lost for '${String(facts['reason'])}', ${recorded} are recorded`)
  }
  return look.verdict()
}

function isConflict({ did, end, facts }: Operation): boolean {
  return did === 'claim' && end === 'returned' && facts['got'] === 'conflict'
}

function launcherOf({ facts }: Operation): string {
  return `${String(facts['key'])} by ${String(facts['instance'])} for ${String(facts['reason'])}`
}

function conflictLines(lines: Evidence['lines'], facts: Operation['facts']): HistoryLine[] {
  return (lines.get(String(facts['key'])) ?? []).filter(({ outcome, instanceId }) => outcome === 'conflict' && instanceId === facts['instance'])
}

function recovery({ runs, finished }: Evidence): Verdict {
  const look = new Look('recovery')
  look.that(finished, () => 'the workers did not come to their end')
  for (const { taskKey, status } of runs) look.that(status === 'completed' || status === 'failed', () => `${taskKey} is still ${status}`)
  return look.verdict()
}

function attempts({ runs, lines, tenures }: Evidence): Verdict {
  const look = new Look('attempts')
  for (const run of runs) {
    const counted = (lines.get(run.taskKey) ?? []).filter(({ outcome }) => COUNTED.has(outcome))
    look.that(counted.length === run.attempt, () => `${run.taskKey} counts ${run.attempt} attempts, its history has ${counted.length}`)
    look.that(run.attempt <= run.maxAttempts, () => `${run.taskKey} has ${run.attempt} attempts of ${run.maxAttempts}`)
  }
  for (const ofKey of Map.groupBy(tenures, ({ key }) => key).values()) {
    const inOrder = ofKey.toSorted(byFence)
    for (const [index, tenure] of inOrder.entries()) {
      const before = inOrder[index - 1]
      const counts = before === undefined || tenure.attempt > before.attempt || wasAsked(before, 'release') // That gives the number back.
      look.that(counts, () => `${describe(tenure)} was handed out after ${describe(before!)}`)
      look.that(tenure.attempt <= tenure.maxAttempts, () => `${describe(tenure)} is beyond ${tenure.maxAttempts} attempts`)
    }
  }
  return look.verdict()
}

const LEFT_BY: Readonly<Record<string, string>> = { complete: 'completed', fail: 'failed', release: 'released' }

function durable({ runs, lines, tenures, operations }: Evidence): Verdict {
  const look = new Look('durable')
  const known = new Set(runs.map(({ taskKey }) => taskKey))
  for (const tenure of tenures) {
    const left = linesOf(lines, tenure)
    look.that(left.length > 0, () => `${describe(tenure)} was acknowledged, and the tables do not know it`)
    for (const { did } of acceptedWrites(tenure)) {
      const outcome = LEFT_BY[did]
      if (outcome) look.that(left.some((line) => line.outcome === outcome), () => `${did} of ${describe(tenure)} was acknowledged, and is not recorded`)
    }
  }
  for (const { facts } of operations.filter(({ did, end, facts }) => did === 'claim' && end === 'returned' && facts['got'] === 'queued')) {
    look.that(known.has(String(facts['key'])), () => `${String(facts['key'])} was queued, and is not there`)
  }
  for (const { facts } of operations.filter(({ did, end }) => did === 'enqueue' && end === 'returned')) {
    for (let nth = Number(facts['from']); nth <= Number(facts['to']); nth++) look.that(known.has(`${String(facts['task'])}:${nth}`), () => `${String(facts['task'])}:${nth} was enqueued, and is not there`)
  }
  return look.verdict()
}

function linesOf(lines: Evidence['lines'], { key, attempt, fence, instance }: Tenure): HistoryLine[] {
  return (lines.get(key) ?? []).filter((line) => line.attempt === attempt && line.fence === fence && line.instanceId === instance)
}

/** What is recorded as an end was asked for by its holder; a launch that lost left a conflict and nothing else. */
function conflicts({ runs, lines, operations, queued }: Evidence): Verdict {
  const look = new Look('conflicts')
  const asked = new Set(operations.filter(({ did, end }) => did in LEFT_BY && end !== 'refused').map(({ did, facts }) => `${LEFT_BY[did]!} ${String(facts['key'])} ${String(facts['fence'])}`))
  for (const [key, ofKey] of lines) {
    for (const { outcome, fence, task } of ofKey) {
      // A worker of the queue gives back what it had no time for, without a word.
      if (Object.values(LEFT_BY).includes(outcome) && !(outcome === 'released' && queued.has(task))) look.that(asked.has(`${outcome} ${key} ${String(fence)}`), () => `${key} (fence ${String(fence)}) is recorded as ${outcome}, which nobody said`)
    }
  }
  for (const run of runs) lookAtFailure(run, lines.get(run.taskKey) ?? [], look)
  const launches = Map.groupBy(operations.filter(({ did, facts }) => did === 'claim' && facts['got'] !== 'claimed' && facts['got'] !== 'queued'), ({ facts }) => `${String(facts['key'])} by ${String(facts['instance'])}`)
  for (const [name, all] of launches) {
    const recorded = conflictLines(lines, all[0]!.facts)
    look.that(recorded.length <= all.length && recorded.every(({ attempt }) => attempt === null), () => `${name}: ${recorded.length} conflicts are recorded of ${all.length} launches`)
  }
  return look.verdict()
}

function lookAtFailure(run: Run, lines: readonly HistoryLine[], look: Look): void {
  if (run.status !== 'failed') return
  const last = lines.filter(({ outcome }) => outcome === 'failed' || outcome === 'lost' || outcome === 'cancelled').at(-1)
  look.that(last !== undefined && last.attempt === run.attempt, () => `${run.taskKey} is failed (${String(run.failureReason)}) without an attempt that failed`)
}

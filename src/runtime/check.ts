/** Everything that a monitoring system should wake somebody for, found in the database alone. */
import { formatDuration } from '../model/duration.ts'
import { expectedFrom } from '../model/expected.ts'
import { taskKey } from '../model/names.ts'
import type { Problem, Thresholds } from '../model/problem.ts'
import { scheduleOf, scheduleProblem, type Task } from '../model/task.ts'
import { windowAt } from '../model/window/window.ts'
import { refusals } from '../store/find-runs.ts'
import { doubts, overlapsSince, runsOfKeys, staleRuns } from '../store/find-trouble.ts'
import { listTasks, readNow } from '../store/read-task.ts'
import type { Store } from '../store/tables.ts'
import { failuresSince, taskPulses } from '../store/task-pulse.ts'

/** Of a kind that comes in hundreds at once, so many are told one by one. */
const MOST_TOLD = 20
const HOUR_MS = 3_600_000

/** The critical ones first. @param only this task alone */
export async function findProblems(store: Store, thresholds: Thresholds, only?: string): Promise<Problem[]> {
  const now = await readNow(store)
  const problems = [
    ...(await overdue(store, await listTasks(store, only), now)),
    ...(await failing(store, thresholds, only)),
    ...(await inDoubt(store, only)),
    ...(await stale(store, thresholds, only)),
    ...(await overlapping(store, thresholds, now, only)),
  ]
  return problems.toSorted((one, other) => Number(other.severity === 'critical') - Number(one.severity === 'critical'))
}

/** By the latest window whose grace is over: an earlier gap is for `missing` to list, not for an alarm that would never end. */
async function overdue(store: Store, tasks: readonly Task[], now: Date): Promise<Problem[]> {
  const unreadable = tasks.map((task) => ({ task, problem: scheduleProblem(task) })).filter(({ problem }) => problem !== null)
  const due = tasks.filter((task) => scheduleProblem(task) === null).flatMap((task) => {
    const from = expectedFrom(task)
    const window = from && task.pausedAt === null ? windowAt(scheduleOf(task)!, new Date(now.getTime() - task.graceMs)) : null
    return window && window.start >= from! ? [{ task, window, key: taskKey(task.name, window.label) }] : []
  })
  const runs = await runsOfKeys(store, due.map(({ key }) => key))
  const waiting = due.filter(({ key }) => !runs.has(key) || (runs.get(key)!.status === 'pending' && runs.get(key)!.attempt === 0))
  const reasons = await refusals(store, waiting.map(({ key }) => key))
  const unknown = unreadable.map(({ task: { name, schedule, zone }, problem }): Problem => ({ severity: 'warning', kind: 'overdue', task: name, taskKey: null, since: null, message: `the schedule ${schedule} in ${zone} cannot be read on this host: ${problem}` }))
  const late = waiting.map(({ task, window, key }): Problem => {
    const reason = reasons.get(key)
    const why = runs.has(key) ? 'is recorded, and nobody has begun it' : reason ? `did not run; its launch was refused: ${reason}` : 'did not run, and no launch is recorded'
    const at = window.start.toISOString()
    return { severity: reason === 'overlap' ? 'warning' : 'critical', kind: 'overdue', task: task.name, taskKey: key, since: window.start, message: `the window of ${at} ${why} (grace ${formatDuration(task.graceMs)})` }
  })
  return [...late, ...unknown]
}

async function failing(store: Store, { failures }: Thresholds, only?: string): Promise<Problem[]> {
  const problems: Problem[] = []
  for await (const { name, lastSuccessAt, lastFailureAt } of taskPulses(store, only)) {
    if (!lastFailureAt || (lastSuccessAt && lastSuccessAt >= lastFailureAt)) continue
    const failed = await failuresSince(store, name, lastSuccessAt, failures)
    const [last] = failed
    if (!last) continue
    const isMany = failed.length >= failures
    const what = [last.reason, last.exitCode === null ? null : `exit ${last.exitCode}`].filter(Boolean).join(', ')
    const message = `${isMany ? `at least ${failures} runs failed in a row; ` : ''}${last.taskKey} failed (${what}) at ${last.finishedAt.toISOString()}`
    problems.push({ severity: isMany ? 'critical' : 'warning', kind: 'failed', task: name, taskKey: last.taskKey, since: failed.at(-1)!.finishedAt, message })
  }
  return problems
}

async function inDoubt(store: Store, only?: string): Promise<Problem[]> {
  const found = await doubts(store, MOST_TOLD + 1, only)
  const problems = found.slice(0, MOST_TOLD).map(({ task, taskKey: key, effectKey, startedAt }): Problem => ({
    severity: 'critical', kind: 'in_doubt', task, taskKey: key, since: startedAt, message: `nobody knows whether the effect ${effectKey} happened; ask, then 'runledger effect resolve'`,
  }))
  return [...problems, ...moreThan(found.length, 'critical', 'in_doubt')]
}

async function stale(store: Store, { staleAfterMs }: Thresholds, only?: string): Promise<Problem[]> {
  const found = await staleRuns(store, staleAfterMs, MOST_TOLD + 1, only)
  const problems = found.slice(0, MOST_TOLD).map(({ task, taskKey: key, host, pid, heartbeatAt }): Problem => ({
    severity: 'warning', kind: 'stale', task, taskKey: key, since: heartbeatAt, message: `${key} of ${host ?? 'unknown host'} pid ${pid ?? '?'} had its last heartbeat at ${heartbeatAt.toISOString()}, and neither a launch nor 'runledger reap' has closed it`,
  }))
  return [...problems, ...moreThan(found.length, 'warning', 'stale')]
}

async function overlapping(store: Store, { conflicts }: Thresholds, now: Date, only?: string): Promise<Problem[]> {
  const since = new Date(now.getTime() - HOUR_MS)
  const counts = await overlapsSince(store, since, only)
  return [...counts].filter(([, count]) => count >= conflicts).map(([task, count]) => ({ severity: 'warning', kind: 'conflicts', task, taskKey: null, since, message: `${count} launches met another run of the task in the last hour` }))
}

function moreThan(found: number, severity: Problem['severity'], kind: Problem['kind']): Problem[] {
  return found <= MOST_TOLD ? [] : [{ severity, kind, task: null, taskKey: null, since: null, message: `and more than these ${MOST_TOLD}` }]
}

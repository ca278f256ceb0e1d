/** Why a task is where it is. */
import type { Run, TaskReasons } from '../../index.ts'
import { shortInstant, span } from '../table.ts'
import { aboutPause, advice, evidenceOf, refusals, seenLaunchers, whoHas } from './sentences.ts'

export function tellTask(reasons: TaskReasons): string[] {
  const { task, paused, processing, pending, lastFailed, conflicts, now } = reasons
  return [
    ...aboutWindows(reasons),
    ...(paused ? [aboutPause(paused)] : []),
    ...processing.flatMap((held) => [`${held.run.taskKey} is processing since ${shortInstant(held.run.startedAt)} (${span(held.run.startedAt, now)}), attempt ${held.run.attempt} of at most ${held.run.maxAttempts}, by ${whoHas(held.run)}.`, `  ${evidenceOf(held, now)}`]),
    ...(processing.length === 0 ? [`Nothing of ${task} is processing.`] : []),
    ...pending.map((run) => `${run.taskKey} is pending${run.due ? ' and due: the next launch that may run takes it up' : `; it may begin at ${shortInstant(run.availableAt)}`}.`),
    ...lastEnds(reasons),
    ...refusals(conflicts),
    ...advice([
      ...(paused ? [[`runledger resume ${task}`, 'let it run again'] as const] : []),
      ...[...processing.map(({ run }) => run), ...pending].slice(0, 3).map((run) => [`runledger why ${run.taskKey}`, 'more of this run'] as const),
      ...(lastFailed ? [[`runledger retry ${lastFailed.taskKey}`, 'the last that failed: one attempt more'] as const] : []),
      [`runledger runs --task ${task}`, 'its runs, the newest first'],
    ]),
  ]
}

/** The window that should have run last, and where its launch should have come from. */
function aboutWindows({ task, schedule, latest, now }: TaskReasons): string[] {
  if (!schedule || !latest) return []
  const { window, run } = latest
  const state = run ? run.status : 'nothing is recorded of it: it was not launched, or its launch was refused or did not reach this ledger'
  return [
    `By ${schedule.schedule.source} (${window.zone}) the window ${task}:${window.label} began at ${shortInstant(window.start)}, ${span(window.start, now)} ago: ${state}. The next begins at ${shortInstant(window.end)}, ${span(now, window.end)} from now.`,
    ...(run ? [] : seenLaunchers(schedule.launchers)),
  ]
}

function lastEnds({ task, lastCompleted, lastFailed }: TaskReasons): string[] {
  const failure = (run: Run) => `The last that failed: ${run.taskKey} at ${shortInstant(run.finishedAt)} (${run.failureReason}${run.exitCode === null ? '' : `, exit ${run.exitCode}`})${run.error === null ? '' : `: ${run.error.split('\n')[0]}`}`
  return [
    lastCompleted ? `The last that completed: ${lastCompleted.taskKey} at ${shortInstant(lastCompleted.finishedAt)}, after ${span(lastCompleted.startedAt, lastCompleted.finishedAt)}.` : `No run of ${task} has completed that is still recorded.`,
    ...(lastFailed ? [failure(lastFailed)] : []),
  ]
}

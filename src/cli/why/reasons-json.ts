/** Reasons as one object of JSON, with the names of the tables' columns. */
import type { HeldRun, RunReasons, TaskReasons } from '../../index.ts'
import { historyJson, runJson } from '../run-json.ts'

export function reasonsJson(reasons: RunReasons | TaskReasons) {
  const { about, task, now, paused, conflicts } = reasons
  const seen = { about, task_name: task, now, paused: paused && { paused_at: paused.at, paused_by: paused.by, paused_because: paused.because } }
  const refused = { conflicts: conflicts.map(historyJson) }
  if (reasons.about === 'run') {
    const { run, evidence, inTheWay, lastAttempt } = reasons
    return { ...seen, run: runJson(run), evidence: evidence && evidenceJson(evidence), in_the_way: inTheWay && heldJson(inTheWay), last_attempt: lastAttempt && historyJson(lastAttempt), ...refused }
  }
  const { processing, pending, lastCompleted, lastFailed } = reasons
  return { ...seen, processing: processing.map(heldJson), pending: pending.map(runJson), last_completed: lastCompleted && runJson(lastCompleted), last_failed: lastFailed && runJson(lastFailed), ...refused }
}

function heldJson({ run, evidence }: HeldRun) {
  return { run: runJson(run), evidence: evidenceJson(evidence) }
}

function evidenceJson({ verdict, leaseEndsAt, process }: HeldRun['evidence']) {
  return { verdict, lease_ends_at: leaseEndsAt, process }
}

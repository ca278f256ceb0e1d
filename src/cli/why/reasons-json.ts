/** Reasons as one object of JSON, with the names of the tables' columns. */
import type { AbsentReasons, HeldRun, RunReasons, Scheduled, TaskReasons } from '../../index.ts'
import { historyJson, runJson } from '../run-json.ts'

export function reasonsJson(reasons: RunReasons | TaskReasons | AbsentReasons) {
  const { about, task, now, paused, conflicts } = reasons
  const seen = { about, task_name: task, now, paused: paused && { paused_at: paused.at, paused_by: paused.by, paused_because: paused.because } }
  const refused = { conflicts: conflicts.map(historyJson) }
  if (reasons.about === 'run') {
    const { run, evidence, inTheWay, lastAttempt } = reasons
    return { ...seen, run: runJson(run), evidence: evidence && evidenceJson(evidence), in_the_way: inTheWay && heldJson(inTheWay), last_attempt: lastAttempt && historyJson(lastAttempt), ...refused }
  }
  if (reasons.about === 'absent') return { ...seen, task_key: reasons.taskKey, window: reasons.window && windowJson(reasons.window), schedule: reasons.schedule && scheduleJson(reasons.schedule), ...refused }
  const { schedule, latest } = reasons
  const windows = { schedule: schedule && scheduleJson(schedule), latest: latest && { ...windowJson(latest.window), run: latest.run && runJson(latest.run) } }
  const { processing, pending, lastCompleted, lastFailed } = reasons
  return { ...seen, ...windows, processing: processing.map(heldJson), pending: pending.map(runJson), last_completed: lastCompleted && runJson(lastCompleted), last_failed: lastFailed && runJson(lastFailed), ...refused }
}

function heldJson({ run, evidence }: HeldRun) {
  return { run: runJson(run), evidence: evidenceJson(evidence) }
}

function evidenceJson({ verdict, leaseEndsAt, process }: HeldRun['evidence']) {
  return { verdict, lease_ends_at: leaseEndsAt, process }
}

function windowJson({ start, end, zone, label }: NonNullable<AbsentReasons['window']>) {
  return { window_start: start, window_end: end, window_zone: zone, label }
}

function scheduleJson({ schedule, launchers }: Scheduled) {
  return { schedule: schedule.source, zone: schedule.zone, launchers: launchers.map(({ host, launcher, lastSeenAt }) => ({ host, launcher, last_seen_at: lastSeenAt })) }
}

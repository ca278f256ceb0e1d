/** Runs, history lines and actions as JSON: stable names, the columns of the tables. */
import type { HistoryLine, RecordedAction, Run } from '../index.ts'

export function runJson(run: Run) {
  return {
    task_key: run.taskKey, task_name: run.task, window_start: run.windowStart, window_end: run.windowEnd, window_zone: run.windowZone, status: run.status,
    attempt: run.attempt, max_attempts: run.maxAttempts, fence: run.fence, available_at: run.availableAt, instance_id: run.instanceId, host: run.host, pid: run.pid,
    launcher: run.launcher, lease_seconds: run.leaseSeconds, lease_over: run.leaseOver, started_at: run.startedAt, heartbeat_at: run.heartbeatAt,
    finished_at: run.finishedAt, created_at: run.createdAt, cancel_requested_at: run.cancelRequestedAt, failure_reason: run.failureReason, exit_code: run.exitCode, error: run.error, output_tail: run.outputTail,
  }
}

export function historyJson(line: HistoryLine) {
  return {
    task_key: line.taskKey, task_name: line.task, window_start: line.windowStart, attempt: line.attempt, outcome: line.outcome, reason: line.reason,
    instance_id: line.instanceId, host: line.host, pid: line.pid, launcher: line.launcher, fence: line.fence, started_at: line.startedAt, heartbeat_at: line.heartbeatAt,
    ended_at: line.endedAt, exit_code: line.exitCode, error: line.error, output_tail: line.outputTail, held_by_key: line.heldByKey,
    held_by_instance: line.heldByInstance, held_by_host: line.heldByHost, held_by_pid: line.heldByPid, held_by_launcher: line.heldByLauncher, held_since: line.heldSince,
  }
}

export function actionJson({ id, name, task, taskKey, because, details, at, by }: RecordedAction) {
  return {
    action_id: id, action: name, task_name: task, task_key: taskKey, because, details: details == null ? null : (JSON.parse(details) as unknown),
    acted_at: at, acted_by: by.user, host: by.host, pid: by.pid, launcher: by.launcher,
  }
}

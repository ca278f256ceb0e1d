/** A task as JSON: stable names, the columns of the table. */
import type { Task } from '../../index.ts'

export function taskJson(task: Task) {
  return {
    task_name: task.name, schedule: task.schedule, zone: task.zone, overlap: task.overlap, grace_seconds: task.graceMs / 1000, catch_up: task.catchUp,
    catch_up_max_age_seconds: task.catchUpMaxAgeMs / 1000, catch_up_max_count: task.catchUpMaxCount, expected_since: task.expectedSince, accounted_before: task.accountedBefore,
    schedule_set_at: task.scheduleSetAt, overlap_set_at: task.overlapSetAt, paused_at: task.pausedAt, paused_by: task.pausedBy, paused_because: task.pausedBecause, pruned_before: task.prunedBefore,
  }
}

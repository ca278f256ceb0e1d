/** Effects as JSON: stable names, the columns of the table; the result is the JSON it was recorded as. */
import type { EffectRecord } from '../index.ts'

export function effectJson(effect: EffectRecord) {
  return {
    effect_key: effect.effectKey, effect_name: effect.name, task_key: effect.taskKey, task_name: effect.task, status: effect.status, live: effect.live, calls: effect.calls,
    instance_id: effect.instanceId, attempt: effect.attempt, fence: effect.fence, host: effect.host, pid: effect.pid, started_at: effect.startedAt, done_at: effect.doneAt,
    result: effect.result === null ? null : (JSON.parse(effect.result) as unknown), problem: effect.problem, resolved_by: effect.resolvedBy, resolved_at: effect.resolvedAt,
  }
}

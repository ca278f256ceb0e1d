/** What a row of task_effects must say; every contradiction is a finding. */
import { EFFECT_STATUSES } from './effect.ts'
import type { Finding } from './finding.ts'

export interface EffectFacts {
  readonly effectKey: string
  readonly task: string
  readonly status: string
  readonly calls: number
  readonly hasResult: boolean
  readonly doneAt: Date | null
  readonly resolvedBy: string | null
  readonly resolvedAt: Date | null
}

export function checkEffect(effect: EffectFacts): Finding[] {
  const problems: string[] = []
  const { status, doneAt, calls, hasResult, resolvedBy, resolvedAt } = effect
  if (!EFFECT_STATUSES.some((known) => known === status)) problems.push(`is in the unknown state ${JSON.stringify(status)}`)
  if ((status === 'done') !== (doneAt !== null)) problems.push(status === 'done' ? 'is done, and nobody knows when' : `is ${status}, and was done at ${doneAt!.toISOString()}`)
  if (hasResult && status !== 'done') problems.push(`is ${status} and has a result`)
  if (calls < 1) problems.push(`was called ${calls} times`)
  if ((resolvedBy === null) !== (resolvedAt === null)) problems.push('was resolved by nobody, or never')
  return problems.map((problem) => ({ promise: 10, task: effect.task, key: effect.effectKey, problem }))
}

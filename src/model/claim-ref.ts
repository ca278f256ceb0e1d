/** A claim on paper: what another process needs to go on with it, as JSON or as the environment of a job. */
import { invalidOption } from './errors.ts'
import { DEFAULT_LEASE_MS } from './lease.ts'
import { checkKey, checkTaskName } from './names.ts'
import type { Holder } from './run.ts'

export interface ClaimRef extends Holder {
  readonly task: string
  readonly window: { readonly start: Date; readonly end: Date; readonly zone: string } | null
  readonly maxAttempts: number
  readonly leaseMs: number
  readonly heartbeatMs: number
  /** Pause before the next attempt after a failure; null when a failure is final. */
  readonly backoffMs: number | null
}

/** The JSON fields of a claim, as `runledger claim` prints them. A fence is a number there, exactly, however large. */
export function claimJson(ref: ClaimRef) {
  return {
    status: 'claimed', task: ref.task, task_key: ref.taskKey, instance_id: ref.instanceId, attempt: ref.attempt, max_attempts: ref.maxAttempts, fence: ref.fence,
    window_start: ref.window?.start ?? null, window_end: ref.window?.end ?? null, window_zone: ref.window?.zone ?? null,
    lease_seconds: ref.leaseMs / 1000, heartbeat_seconds: ref.heartbeatMs / 1000, backoff_seconds: ref.backoffMs === null ? null : ref.backoffMs / 1000,
    idempotency_key: ref.taskKey,
  }
}

/** Reads what claimJson wrote. @throws INVALID_OPTION */
export function parseClaim(text: string): ClaimRef {
  const fields = parseFields(text)
  const window = fields['window_start'] && fields['window_end'] ? { start: instant(fields['window_start']), end: instant(fields['window_end']), zone: String(fields['window_zone'] ?? 'UTC') } : null
  return {
    ...holderOf({ taskKey: fields['task_key'], instanceId: fields['instance_id'], attempt: fields['attempt'], fence: /"fence"\s*:\s*(\d+)/.exec(text)?.[1] }),
    task: checkTaskName(String(fields['task'] ?? '')),
    window,
    maxAttempts: Number(fields['max_attempts'] ?? 1),
    leaseMs: Number(fields['lease_seconds'] ?? DEFAULT_LEASE_MS / 1000) * 1000,
    heartbeatMs: Number(fields['heartbeat_seconds'] ?? DEFAULT_LEASE_MS / 5000) * 1000,
    backoffMs: fields['backoff_seconds'] == null ? null : Number(fields['backoff_seconds']) * 1000,
  }
}

/**
 * The claim of the job that this process belongs to: RUNLEDGER_CLAIM (the JSON of `runledger claim`), or what
 * `runledger exec` gives its job; null where there is neither. @throws INVALID_OPTION
 */
export function claimFromEnv(env: Readonly<Record<string, string | undefined>>): ClaimRef | null {
  if (env['RUNLEDGER_CLAIM']) return parseClaim(env['RUNLEDGER_CLAIM'])
  if (!env['RUNLEDGER_TASK_KEY'] || !env['RUNLEDGER_INSTANCE_ID']) return null
  const [start, end] = [env['RUNLEDGER_WINDOW_START'], env['RUNLEDGER_WINDOW_END']]
  return {
    ...holderOf({ taskKey: env['RUNLEDGER_TASK_KEY'], instanceId: env['RUNLEDGER_INSTANCE_ID'], attempt: env['RUNLEDGER_ATTEMPT'], fence: env['RUNLEDGER_FENCE'] }),
    task: checkTaskName(env['RUNLEDGER_TASK'] ?? ''),
    window: start && end ? { start: instant(start), end: instant(end), zone: 'UTC' } : null,
    maxAttempts: 1,
    leaseMs: DEFAULT_LEASE_MS,
    heartbeatMs: DEFAULT_LEASE_MS / 5,
    backoffMs: null,
  }
}

function parseFields(text: string): Record<string, string | number | null> {
  try {
    const fields: unknown = JSON.parse(text)
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return fields as Record<string, string | number | null>
  } catch {
    // Said below, together with JSON that is something else.
  }
  throw invalidOption('claim', 'is not the JSON that runledger claim printed')
}

function holderOf({ taskKey, instanceId, attempt, fence }: Record<keyof Holder, unknown>): Holder {
  if (!/^[0-9a-f-]{36}$/.test(String(instanceId)) || !/^\d{1,10}$/.test(String(attempt)) || !/^\d{1,19}$/.test(String(fence))) throw invalidOption('claim', 'lacks instance, attempt or fence: nothing was claimed, or it is not what runledger claim printed')
  return { taskKey: checkKey('claim', String(taskKey)), instanceId: String(instanceId), attempt: Number(attempt), fence: BigInt(String(fence)) }
}

function instant(text: unknown): Date {
  const date = new Date(String(text))
  if (Number.isNaN(date.getTime())) throw invalidOption('claim', 'has a window that is no instant')
  return date
}

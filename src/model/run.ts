/** A run, an attempt and who makes it, as values: what the store returns and the operator reads. */
import type { FailureReason, Status } from './states.ts'

/** One start of one process: never host or pid alone. */
export interface Instance {
  /** A UUIDv7, new at each start. */
  readonly id: string
  readonly host: string
  readonly pid: number
  /** Enough to prove on the same host that the process is gone (see runtime/process-identity.ts); null where it cannot be had. */
  readonly processIdentity: string | null
  /** What started the process: `cron`, `systemd`, `tty`, … */
  readonly launcher: string
}

/** One row of `task_runs`. Instants are UTC with the milliseconds that JavaScript has. */
export interface Run {
  readonly taskKey: string
  readonly task: string
  readonly windowStart: Date | null
  readonly windowEnd: Date | null
  readonly windowZone: string | null
  readonly status: Status
  readonly availableAt: Date
  readonly concurrencyKey: string | null
  /** Attempts begun so far. */
  readonly attempt: number
  readonly maxAttempts: number
  readonly fence: bigint
  readonly instanceId: string | null
  readonly host: string | null
  readonly pid: number | null
  readonly processIdentity: string | null
  readonly launcher: string | null
  readonly leaseSeconds: number | null
  readonly startedAt: Date | null
  readonly heartbeatAt: Date | null
  readonly finishedAt: Date | null
  readonly createdAt: Date
  /** When an operator asked for it to stop. */
  readonly cancelRequestedAt: Date | null
  readonly failureReason: FailureReason | null
  readonly exitCode: number | null
  readonly error: string | null
  readonly outputTail: string | null
  /** Judged by the database's clock when the row was read: processing, and the lease has run out. */
  readonly leaseOver: boolean
  /** Judged likewise: pending, and its time has come. */
  readonly due: boolean
}

/** One line of `task_run_history`: an attempt, or a launch that lost. */
export interface HistoryLine {
  readonly taskKey: string
  readonly task: string
  readonly windowStart: Date | null
  readonly attempt: number | null
  /** `processing`, `completed`, or how it ended: `failed`, `lost`, `released`, `cancelled`, `conflict`. */
  readonly outcome: string
  readonly reason: string | null
  readonly instanceId: string | null
  readonly host: string | null
  readonly pid: number | null
  readonly launcher: string | null
  readonly fence: bigint | null
  readonly startedAt: Date | null
  readonly heartbeatAt: Date | null
  readonly endedAt: Date | null
  readonly exitCode: number | null
  readonly error: string | null
  readonly outputTail: string | null
  readonly heldByKey: string | null
  readonly heldByInstance: string | null
  readonly heldByHost: string | null
  readonly heldByPid: number | null
  readonly heldByLauncher: string | null
  readonly heldSince: Date | null
}

/** What is known of an attempt when it ends. Texts are bounded and cleaned before they reach the store. */
export interface Ending {
  readonly exitCode?: number | null
  readonly error?: string | null
  readonly outputTail?: string | null
}

/** Proof of holding a run: every closing write repeats it. */
export interface Holder {
  readonly taskKey: string
  readonly instanceId: string
  readonly attempt: number
  readonly fence: bigint
}

/** A run of one instance is named by its key and fence: the same key may be taken again after it was lost. */
export function nameOf({ taskKey, fence }: Pick<Holder, 'taskKey' | 'fence'>): string {
  return `${fence} ${taskKey}`
}

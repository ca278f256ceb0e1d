/** How a program opens the ledger. */
import type { ClockOffset } from '../dialect/dialect.ts'
import type { Duration } from '../model/duration.ts'
import type { Logger } from '../model/event.ts'
import type { AnyTasks, Schemas } from '../model/tasks.ts'

export interface LedgerOptions<Tasks = AnyTasks> {
  /** What validates the payloads of tasks, at enqueue and before the handler: any Standard Schema library. */
  readonly schemas?: Schemas<Tasks>
  /** How long a database that does not answer is asked again before DATABASE_UNAVAILABLE. Default 10 s. */
  readonly connectTimeout?: Duration
  /**
   * Where heartbeats run: a `thread` of their own (the default), which a handler that blocks the event loop cannot
   * stop, or the `loop` of this thread, for a program that never blocks it.
   */
  readonly heartbeats?: 'thread' | 'loop'
  /** The id of this start of this process, where it had to be known before; a UUIDv7 of its own by default. */
  readonly instanceId?: string
  /** Pids of processes that belong to this instance: it counts as dead only when they are gone too. */
  readonly helpers?: readonly number[] | Promise<readonly number[]>
  /**
   * The process that does the work, where it is not this one: claims are made in its name. `provable` says that it lives
   * as long as the claim is to, so that its death frees the run at once on this host; else the lease alone decides.
   */
  readonly owner?: { readonly pid: number; readonly provable: boolean }
  /** Hears of heartbeats that failed and will be tried again. */
  readonly onHeartbeatError?: (error: unknown) => void
  /** Hears of everything the ledger does: a pino, the console, or anything with their four methods. Facts first. */
  readonly logger?: Logger | undefined
  /** False leaves @opentelemetry/api alone; otherwise it is used where it is installed. */
  readonly telemetry?: boolean
  /** The trace that this process is a part of (W3C Trace Context), for where no span is active. */
  readonly traceparent?: string | undefined
  /** Moves the database's clock as this ledger sees it; for tests. */
  readonly clock?: ClockOffset
}

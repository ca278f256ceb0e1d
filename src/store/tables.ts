/** The tables as Kysely sees them. Instants come back as the driver has them and pass through the dialect. */
import type { ColumnType, Generated, Kysely } from 'kysely'
import type { Dialect } from '../dialect/dialect.ts'
import type { ActionName } from '../model/action.ts'
import type { EffectStatus } from '../model/effect.ts'
import type { Ends } from '../model/measures.ts'
import type { OverlapPolicy } from '../model/outcome.ts'
import type { AttemptOutcome, FailureReason, Status } from '../model/states.ts'
import type { CatchUp } from '../model/task.ts'

/** Written as an expression of the dialect (`now`, `instant`), read through `readInstant`. */
type Instant = ColumnType<unknown, unknown, unknown>
type Fence = ColumnType<bigint | number | string, bigint, bigint>

export interface TaskRuns {
  task_key: string
  task_name: string
  queue: Generated<string>
  priority: Generated<number>
  window_start: Instant
  window_end: Instant
  window_zone: string | null
  status: Status
  available_at: Instant
  concurrency_key: string | null
  active_key: string | null
  attempt: number
  max_attempts: number
  fence: Fence
  instance_id: string | null
  host: string | null
  pid: ColumnType<bigint | number | string | null, number | null, number | null>
  process_identity: string | null
  launcher: string | null
  lease_seconds: number | null
  started_at: Instant
  heartbeat_at: Instant
  finished_at: Instant
  created_at: Instant
  cancel_requested_at: Instant
  failure_reason: FailureReason | null
  exit_code: number | null
  error: string | null
  output_tail: string | null
  payload: string | null
  result: string | null
  position: ColumnType<bigint | number | string, bigint | undefined, bigint>
  ready_queue: Generated<string | null>
  waiting_key: Generated<string | null>
  due_at: Instant
  concurrency_limit: Generated<number>
  backoff_seconds: Generated<number | null>
  timeout_seconds: Generated<number | null>
}

export interface TaskAttempts {
  id: Generated<number>
  task_key: string
  task_name: string
  window_start: Instant
  window_end: Instant
  window_zone: string | null
  attempt: number | null
  outcome: AttemptOutcome
  reason: string | null
  instance_id: string | null
  host: string | null
  pid: ColumnType<bigint | number | string | null, number | null, number | null>
  launcher: string | null
  fence: Fence | null
  started_at: Instant
  heartbeat_at: Instant
  ended_at: Instant
  exit_code: number | null
  error: string | null
  output_tail: string | null
  held_by_key: string | null
  held_by_instance: string | null
  held_by_host: string | null
  held_by_pid: ColumnType<bigint | number | string | null, number | null, number | null>
  held_by_launcher: string | null
  held_since: Instant
  launch_id: Generated<string | null>
}

export interface TaskFences {
  scope: string
  counter: Fence
}

export interface Tasks {
  task_name: string
  schedule: string | null
  zone: string | null
  overlap: OverlapPolicy | null
  grace_seconds: number | null
  paused_at: Instant
  paused_by: Generated<string | null>
  paused_because: Generated<string | null>
  pruned_before: Instant
  catch_up: Generated<CatchUp | null>
  catch_up_max_age_seconds: Generated<number | null>
  catch_up_max_count: Generated<number | null>
  /** The first window that counts begins at or after it. */
  expected_since: Instant
  /** Every window that begins before it has its run, or was passed over knowingly by a catch-up. */
  accounted_before: Instant
  /** When an operator set the schedule, or the policy: launches then do not change it. */
  schedule_set_at: Instant
  overlap_set_at: Instant
}

/** Who launches a task by which schedule. */
export interface TaskLaunchers {
  task_name: string
  host: string
  launcher: string
  schedule: string
  zone: string
  first_seen_at: Instant
  last_seen_at: Instant
}

/** Endings that were counted, by task; the row of the empty task is the mark (see totals.ts). */
export interface TaskTotals {
  task_name: string
  ends: Ends | 'mark'
  outcome: string
  reason: string
  endings: ColumnType<bigint | number | string, bigint, bigint>
  seconds: number
  /** Of the mark alone. */
  counted_before: Instant
}

export interface TaskActions {
  action_id: string
  action: ActionName
  task_name: string | null
  task_key: string | null
  because: string | null
  details: string | null
  acted_at: Instant
  acted_by: string
  host: string | null
  pid: ColumnType<bigint | number | string | null, number | null, number | null>
  launcher: string | null
}

export interface TaskEffects {
  effect_key: string
  effect_name: string
  task_key: string
  task_name: string
  status: EffectStatus
  call_id: string
  calls: number
  instance_id: string
  attempt: number
  fence: Fence
  host: string | null
  pid: ColumnType<bigint | number | string | null, number | null, number | null>
  started_at: Instant
  done_at: Instant
  result: string | null
  problem: string | null
  resolved_by: string | null
  resolved_at: Instant
}

export interface Tables {
  task_runs: TaskRuns
  task_attempts: TaskAttempts
  task_fences: TaskFences
  tasks: Tasks
  task_launchers: TaskLaunchers
  task_totals: TaskTotals
  task_run_history: TaskAttempts
  task_actions: TaskActions
  task_effects: TaskEffects
  task_effects_in_doubt: TaskEffects
}

/** The ledger's own database: what every verb of the store is given first. */
export type Store = Dialect<Tables>

/** The database, or a transaction on it. */
export type Db = Kysely<Tables>

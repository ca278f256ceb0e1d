/** What a worker tells its program: what became of each run, and how it is itself. */
import type { FailureReason } from '../../model/states.ts'
import type { WorkRun } from './work-run.ts'

export type WorkerEvent =
  | { readonly event: 'started'; readonly run: WorkRun }
  | { readonly event: 'completed'; readonly run: WorkRun; readonly problem?: string }
  | { readonly event: 'failed'; readonly run: WorkRun; readonly reason: FailureReason; readonly error: unknown; readonly retryInMs: number | null }
  /** It is not ours any more; what its handler did is not recorded. */
  | { readonly event: 'lost'; readonly run: WorkRun; readonly error: unknown }
  /** Given back unfinished, the attempt not counted. */
  | { readonly event: 'released'; readonly run: WorkRun }
  /** The database answers again, or does not; `problem` says what is wrong. When that becomes something else, it is `degraded` again. */
  | { readonly event: 'connected' | 'degraded' | 'stopped'; readonly problem: string | null }
  /** A heartbeat failed and is tried again. */
  | { readonly event: 'heartbeat_missed'; readonly error: unknown }
  /** Closed attempts of owners that are gone. */
  | { readonly event: 'reaped'; readonly runs: number }

export type Tell = (event: WorkerEvent) => void

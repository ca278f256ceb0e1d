/** Each task that has runs, with its last endings: a few index probes a task, however long the history. */
import { sql } from 'kysely'
import { namesOfRuns } from './run-names.ts'
import type { Store } from './tables.ts'

export interface TaskPulse {
  readonly name: string
  readonly lastSuccessAt: Date | null
  readonly lastFailureAt: Date | null
}

/** In the order of their names. */
export async function* taskPulses(store: Store, only?: string): AsyncGenerator<TaskPulse> {
  for (const name of only === undefined ? await namesOfRuns(store) : [only]) yield await pulseOf(store, name)
}

async function pulseOf(store: Store, name: string): Promise<TaskPulse> {
  const runs = store.table('task_runs')
  const last = (status: string) => sql`(select finished_at from ${runs} where task_name = ${name} and status = ${sql.lit(status)} order by finished_at desc limit 1)`
  const { rows } = await sql<{ success: unknown; failure: unknown }>`select ${last('completed')} as success, ${last('failed')} as failure`.execute(store.db)
  return { name, lastSuccessAt: store.readInstant(rows[0]!.success), lastFailureAt: store.readInstant(rows[0]!.failure) }
}

export interface FailedRun {
  readonly taskKey: string
  readonly reason: string | null
  readonly exitCode: number | null
  readonly finishedAt: Date
}

/** Runs of a task that failed after its last success, the newest first; one that an operator cancelled is no failure. */
export async function failuresSince(store: Store, name: string, since: Date | null, limit: number): Promise<FailedRun[]> {
  let query = store.db
    .selectFrom('task_runs')
    .select(['task_key', 'failure_reason', 'exit_code', 'finished_at'])
    .where('task_name', '=', name)
    .where(sql<boolean>`status = 'failed'`)
    .orderBy('finished_at', 'desc')
    .limit(limit)
  if (since) query = query.where(sql<boolean>`finished_at > ${store.instant(since)}`)
  const rows = await query.execute()
  return rows.filter((row) => row.failure_reason !== 'cancelled').map((row) => ({ taskKey: row.task_key, reason: row.failure_reason, exitCode: row.exit_code, finishedAt: store.readInstant(row.finished_at)! }))
}

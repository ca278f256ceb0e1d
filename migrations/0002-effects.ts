/**
 * Effects: what a job did to the outside world, and the tokens of resources that are protected by a fence.
 * Frozen once released: literal names, nothing imported from the store or the model. Each statement can be run again,
 * since MySQL and MariaDB commit every one of them by itself.
 */
import { sql } from 'kysely'
import type { MigrationContext } from './context.ts'

export const name = '0002-effects'

export async function up(context: MigrationContext): Promise<void> {
  await createEffects(context)
  await createDoubtView(context)
  await createFencedResources(context)
}

async function createEffects({ db, ddl, table }: MigrationContext): Promise<void> {
  await sql`
    create table if not exists ${table('task_effects')} (
      effect_key ${ddl.key(255)} not null primary key,
      effect_name ${ddl.key(100)} not null,
      task_key ${ddl.key(200)} not null,
      task_name ${ddl.key(100)} not null,
      status ${ddl.key(10)} not null,
      call_id ${ddl.key(36)} not null,
      calls ${ddl.integer} default 1 not null,
      instance_id ${ddl.key(36)} not null,
      attempt ${ddl.integer} not null,
      fence ${ddl.bigint} not null,
      host ${ddl.key(255)},
      pid ${ddl.bigint},
      started_at ${ddl.instant} not null,
      done_at ${ddl.instant},
      result ${ddl.text},
      problem ${ddl.text},
      resolved_by ${ddl.key(255)},
      resolved_at ${ddl.instant},
      constraint ${ddl.constraint('task_effects_status')} check (status in ('started', 'in_doubt', 'done', 'not_done')),
      constraint ${ddl.constraint('task_effects_done')} check ((status = 'done') = (done_at is not null)),
      constraint ${ddl.constraint('task_effects_result')} check (result is null or status = 'done'),
      constraint ${ddl.constraint('task_effects_resolved')} check ((resolved_by is null) = (resolved_at is null))
    ) ${ddl.tableOptions}`.execute(db)
  await ddl.createIndex(db, { name: 'task_effects_task_key', table: 'task_effects', columns: ['task_key'] })
  // What may need somebody: few rows, however many effects were done.
  await ddl.createIndex(db, { name: 'task_effects_status_started_at', table: 'task_effects', columns: ['status', 'started_at'], where: sql`status in ('started', 'in_doubt')` })
}

/** In doubt by word, or begun by an attempt that does not live any more. */
async function createDoubtView({ db, ddl, table, now, plusSeconds }: MigrationContext): Promise<void> {
  const leaseEnd = plusSeconds(sql.ref('r.heartbeat_at'), sql.ref('r.lease_seconds'))
  await ddl.createView(db, 'task_effects_in_doubt', sql`
    select e.effect_key, e.effect_name, e.task_key, e.task_name, e.status, e.call_id, e.calls, e.instance_id, e.attempt, e.fence,
      e.host, e.pid, e.started_at, e.done_at, e.result, e.problem, e.resolved_by, e.resolved_at
    from ${table('task_effects')} e
    where e.status = 'in_doubt' or (e.status = 'started' and not exists (
      select 1 from ${table('task_runs')} r
      where r.task_key = e.task_key and r.instance_id = e.instance_id and r.attempt = e.attempt and r.fence = e.fence
        and r.status = 'processing' and ${leaseEnd} >= ${now()}))`)
}

/** `stale` is never true: it is there so that a database without a conditional upsert can refuse a lower token by its CHECK. */
async function createFencedResources({ db, ddl, table }: MigrationContext): Promise<void> {
  await sql`
    create table if not exists ${table('fenced_resources')} (
      resource ${ddl.key(200)} not null primary key,
      token ${ddl.bigint} not null,
      stale ${ddl.integer} default 0 not null,
      constraint ${ddl.constraint('fenced_resources_stale')} check (stale = 0)
    ) ${ddl.tableOptions}`.execute(db)
}

/** Rows that contradict each other: what no fault, at whatever moment, may leave behind. */
import type { Row, TestDatabase } from '../support/databases.ts'

/** Every contradiction in the ledger, with the key it is about. (An enqueued run without a concurrency key counts its fences in itself.) The same SQL on every database, past the product. */
export function violations(db: Pick<TestDatabase, 'admin'>, url: string): Promise<Row[]> {
  return db.admin(
    `select 'processing without its concurrency key' as problem, task_key from task_runs
       where status = 'processing' and concurrency_key is not null and (active_key is null or active_key <> concurrency_key)
     union all
     select 'holds a concurrency key without processing', task_key from task_runs where status <> 'processing' and active_key is not null
     union all
     select 'fence above the counter of its scope', r.task_key from task_runs r left join task_fences f on f.scope = coalesce(r.concurrency_key, r.task_name)
       where r.fence > coalesce(f.counter, 0) and (r.concurrency_key is not null or r.position = 0)
     union all
     select 'end of an attempt recorded twice', task_key from task_attempts where outcome <> 'conflict' group by task_key, attempt, fence having count(*) > 1
     union all
     select 'attempts and history differ', r.task_key from task_runs r
       where (select count(*) from task_attempts a where a.task_key = r.task_key and a.outcome in ('failed', 'lost'))
          <> r.attempt - case when r.status in ('processing', 'completed') then 1 else 0 end
     union all
     select 'history of an attempt without its run', a.task_key from task_attempts a
       where a.outcome <> 'conflict' and not exists (select 1 from task_runs r where r.task_key = a.task_key)`,
    url,
  )
}

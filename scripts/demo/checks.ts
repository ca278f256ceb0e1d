/** What must be true after the demo, each as SQL on the ledger that selects what contradicts it: no row, no fault. */

export interface Check {
  readonly promise: string
  readonly violations: string
}

/** Every full minute between the first and the last window that was completed, for each task. */
const WINDOWS = `
  windows as (
    select task_name, generate_series(min(window_start), max(window_start), interval '1 minute') as window_start
    from task_runs where status = 'completed' group by task_name
  )`

/** A launch met the run of an earlier window. */
const OVERTAKEN = `select from task_conflicts c where c.task_name = w.task_name and c.reason = 'overlap'
  and c.task_key = w.task_name || ':' || to_char(w.window_start at time zone 'Asia/Shanghai', 'YYYY-MM-DD-HH24:MI')`

export const checks: readonly Check[] = [
  {
    promise: 'every window from the first to the last completed ran to its end once, or its launches met the run of an earlier one (policy skip)',
    violations: `with ${WINDOWS}
      select w.task_name, w.window_start, count(r.task_key) as completed from windows w
      left join task_runs r on r.task_name = w.task_name and r.window_start = w.window_start and r.status = 'completed'
      group by w.task_name, w.window_start
      having count(r.task_key) > 1 or (count(r.task_key) = 0 and (w.task_name = 'daily_news' or not exists (${OVERTAKEN})))`,
  },
  {
    promise: 'no attempt of a run began after the run was completed',
    violations: `select a.task_key, a.attempt, a.started_at, r.finished_at from task_attempts a join task_runs r using (task_key)
      where a.outcome <> 'conflict' and r.status = 'completed' and a.started_at >= r.finished_at`,
  },
  {
    promise: 'no two attempts of one task were open at the same time',
    violations: `select a.task_key, a.attempt, b.task_key as other_key, b.attempt as other_attempt from task_run_history a
      join task_run_history b on a.task_name = b.task_name and (a.task_key, a.attempt) < (b.task_key, b.attempt)
      where a.outcome <> 'conflict' and b.outcome <> 'conflict'
      and a.started_at < coalesce(b.ended_at, 'infinity') and b.started_at < coalesce(a.ended_at, 'infinity')`,
  },
  {
    promise: 'fences of a task grow with every attempt',
    violations: `select * from (select task_key, attempt, fence, lag(fence) over (partition by task_name order by started_at) as before
      from task_run_history where outcome <> 'conflict') h where fence <= before`,
  },
  {
    promise: 'every launch that lost names its holder, and that one held the run then, or had held it last',
    violations: `select c.task_key, c.at, c.reason, c.host, c.held_by_key, c.held_by_host from task_conflicts c
      where not exists (select from task_run_history h where h.task_key = c.held_by_key and h.instance_id = c.held_by_instance
        and h.host = c.held_by_host and h.outcome <> 'conflict' and h.started_at <= c.at
        and (h.ended_at is null or h.ended_at >= c.at or c.reason in ('done', 'failed', 'not_due')))`,
  },
  {
    promise: 'all three hosts left a line for every window: they ran it, or lost it to somebody',
    violations: `with ${WINDOWS}, hosts as (select distinct host from task_run_history)
      select w.task_name, w.window_start, hosts.host from windows w cross join hosts
      where not exists (select from task_run_history h where h.task_name = w.task_name and h.window_start = w.window_start and h.host = hosts.host)
      -- A window that was queued behind a run is the next one's in line, whoever of the three put it there.
      and not exists (select from task_runs q where q.task_name = w.task_name and q.window_start = w.window_start
        and q.created_at < (select min(started_at) from task_run_history h where h.task_key = q.task_key and h.outcome <> 'conflict'))`,
  },
  {
    promise: 'the launcher killed with SIGKILL: its attempt is recorded as lost, and the run was completed by a later one',
    violations: `select 'no run was lost and recovered' as what where not exists (
        select from task_attempts a join task_runs r using (task_key) where a.outcome = 'lost' and a.task_name = 'daily_news'
        and r.status = 'completed' and r.attempt > a.attempt and r.fence > a.fence and r.instance_id <> a.instance_id)
      union all
      select task_key || ' was lost and not recovered' from task_attempts a join task_runs r using (task_key)
      where a.outcome = 'lost' and r.status <> 'completed'`,
  },
  {
    promise: 'the job killed with SIGKILL: its attempt is recorded as failed, and its launcher completed the run in a later one',
    violations: `select 'no run failed by a signal and was completed' as what where not exists (
        select from task_attempts a join task_runs r using (task_key) where a.outcome = 'failed' and a.reason = 'signal' and a.task_name = 'stock_sync'
        and r.status = 'completed' and r.attempt > a.attempt and r.instance_id = a.instance_id)`,
  },
  {
    promise: 'a run overran its minute: with policy queue its follower was run behind it, with policy skip it was passed over',
    violations: `select 'no queued window was run by the launcher before it' as what where not exists (
        select from task_runs q join task_runs r on r.task_name = q.task_name and r.window_end = q.window_start and r.instance_id = q.instance_id
        where q.task_name = 'daily_news' and r.finished_at > q.window_start and q.started_at >= r.finished_at)
      union all
      select 'no window was passed over' where not exists (
        select from task_conflicts c where c.task_name = 'stock_sync' and c.reason = 'overlap'
        and not exists (select from task_runs r where r.task_key = c.task_key))`,
  },
  {
    promise: 'two crons and one systemd timer took part, each on its host',
    violations: `select count(distinct (host, split_part(launcher, ':', 1))) as launchers from task_run_history
      where (host, split_part(launcher, ':', 1)) in (('web-1', 'cron'), ('web-2', 'cron'), ('batch-1', 'systemd'))
      having count(distinct (host, split_part(launcher, ':', 1))) <> 3`,
  },
  {
    promise: 'at least five windows of each task ended, and nothing is left running or waiting',
    violations: `select task_name, count(*) filter (where status = 'completed') as completed, count(*) filter (where status <> 'completed') as others
      from task_runs group by task_name
      having count(*) filter (where status <> 'completed') > 0 or extract(epoch from max(window_end) - min(window_start)) < 300`,
  },
]

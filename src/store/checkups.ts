/** What doctor asks of the ledger's own rows. */
import { sql } from 'kysely'
import { ok, warning, type Checkup } from '../model/checkup.ts'
import { BY_KEY, isStill } from './line.ts'
import { listLaunchers } from './read-task.ts'
import type { Store } from './tables.ts'

const DAYS = 7
const MOST_TASKS = 50
/** Windows a task, newest first, in which two schedules would show. */
const WINDOWS = 200

interface Launches {
  readonly host: string
  readonly launcher: string
  readonly launches: number
}

/** By task: every run that began and every launch that lost in the last week. */
export async function launches(store: Store): Promise<Map<string, Launches[]>> {
  const since = store.plusSeconds(store.now(), sql.lit(-DAYS * 86_400))
  const { rows } = await sql<{ task_name: string; host: string | null; launcher: string | null; launches: number | bigint }>`
    select task_name, host, launcher, count(*) as launches from (
      select task_name, host, launcher from ${store.table('task_runs')} where created_at >= ${since} and instance_id is not null
      union all
      select task_name, host, launcher from ${store.table('task_attempts')} where ended_at >= ${since}
    ) l group by task_name, host, launcher order by task_name, host, launcher`.execute(store.db)
  return Map.groupBy(rows.map((row) => ({ task: row.task_name, host: row.host ?? '?', launcher: row.launcher ?? '?', launches: Number(row.launches) })), ({ task }) => task)
}

export function launchesTold(byTask: ReadonlyMap<string, readonly Launches[]>): Checkup[] {
  if (byTask.size === 0) return [ok('launches', `nothing was launched in the last ${DAYS} days`)]
  const told = [...byTask].slice(0, MOST_TASKS).map(([task, from]) => ok(`launches of ${task}`, `${from.map(({ host, launcher, launches }) => `${host} ${launcher} (${launches})`).join(', ')} in the last ${DAYS} days`))
  return byTask.size > MOST_TASKS ? [...told, ok('launches', `and of ${byTask.size - MOST_TASKS} tasks more`)] : told
}

const ONE_SCHEDULE = 'look at the crontabs of the hosts that launch it: one task has one schedule'
/** A person who tries a schedule is no second crontab. */
const BY_HAND = 'tty'

/** Two schedules for one task: its launchers tell them apart by name, and where they do not, its newest windows do. */
export async function twoSchedules(store: Store, task: string): Promise<Checkup | null> {
  return (await rivalLaunchers(store, task)) ?? twoKindsOfWindows(store, task)
}

/** Each was seen after the other was first seen: not the old and the new line of an edited crontab. */
async function rivalLaunchers(store: Store, task: string): Promise<Checkup | null> {
  const launchers = (await listLaunchers(store, task)).filter(({ launcher }) => launcher !== BY_HAND)
  const rivals = launchers.filter((one) => launchers.some((other) => (other.schedule !== one.schedule || other.zone !== one.zone) && other.lastSeenAt > one.firstSeenAt && one.lastSeenAt > other.firstSeenAt))
  if (rivals.length === 0) return null
  return warning(`schedules of ${task}`, rivals.map(({ schedule, zone, launcher, host }) => `${schedule} (${zone}) by ${launcher} on ${host}`).join(' and '), ONE_SCHEDULE)
}

/** In two zones, or one window beginning inside another. */
async function twoKindsOfWindows(store: Store, task: string): Promise<Checkup | null> {
  const rows = await store.db
    .selectFrom('task_runs')
    .select(['window_start', 'window_end', 'window_zone'])
    .where('task_name', '=', task)
    .where(isStill('completed'))
    .where('window_start', 'is not', null)
    .orderBy('window_start', 'desc')
    .limit(WINDOWS)
    .execute()
  const zones = new Set(rows.map(({ window_zone }) => window_zone))
  if (zones.size > 1) return warning(`schedules of ${task}`, `its windows are computed in ${[...zones].join(' and ')}`, ONE_SCHEDULE)
  const windows = rows.map((row) => [store.readInstant(row.window_start)!, store.readInstant(row.window_end)!] as const)
  const inside = windows.findIndex(([, end], nth) => nth > 0 && end > windows[nth - 1]![0])
  if (inside < 0) return null
  return warning(`schedules of ${task}`, `a window begins at ${windows[inside - 1]![0].toISOString()}, inside the one from ${windows[inside]![0].toISOString()} to ${windows[inside]![1].toISOString()}`, ONE_SCHEDULE)
}

/** Owners whose last heartbeat is so long ago that a lease has no room for three like it. */
export async function lateHeartbeats(store: Store): Promise<Checkup> {
  const { rows } = await sql<{ task_key: string; lease: number; ago: number }>`
    select task_key, lease_seconds as lease, ${store.secondsBetween(sql.ref('heartbeat_at'), store.now())} as ago
    from ${store.table('task_runs')} where status = 'processing'
      and ${store.secondsBetween(sql.ref('heartbeat_at'), store.now())} * 3 > lease_seconds
      and ${store.secondsBetween(sql.ref('heartbeat_at'), store.now())} <= lease_seconds
    order by ${BY_KEY} limit 5`.execute(store.db)
  if (rows.length === 0) return ok('heartbeats', 'every lease that runs has room for three heartbeats')
  const told = rows.map(({ task_key, lease, ago }) => `${task_key} ${Number(ago).toFixed(1)}s ago under a lease of ${lease}s`)
  return warning('heartbeats', `late: ${told.join(', ')}`, 'a longer --lease, or a host and a database with more time for heartbeats')
}

/** A reaper, or the next launch, closes them within a minute. */
export async function unreaped(store: Store): Promise<Checkup> {
  const { rows } = await sql<{ runs: number | bigint; longest: number | null }>`
    select count(*) as runs, max(seconds_overdue) as longest from ${store.table('stale_task_runs')} where seconds_overdue > 60`.execute(store.db)
  const runs = Number(rows[0]!.runs)
  if (runs === 0) return ok('reaper', 'no lease has been over for more than a minute')
  return warning('reaper', `${runs} ${runs === 1 ? 'lease has' : 'leases have'} been over for up to ${Math.round(Number(rows[0]!.longest))}s: no reaper was here lately`, "a cron entry on any host: * * * * * runledger reap")
}

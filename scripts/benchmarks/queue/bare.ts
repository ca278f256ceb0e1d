/** The statements that a queue cannot do without, in a bare loop through the driver: select and lock, update, commit; update, commit. */
import mysql from 'mysql2/promise'
import pg from 'pg'

const BATCH = 500

/** @returns seconds for so many jobs in a table of its own, of the shape of task_runs */
export async function bareLoop(url: string, jobs: number): Promise<number> {
  return url.startsWith('postgres') ? barePostgres(url, jobs) : bareMysql(url, jobs)
}

const CLAIM = `status = 'processing', attempt = attempt + 1, fence = fence + 1, instance_id = 'bare', host = 'bare', pid = 1, launcher = 'bare', lease_seconds = 60, started_at = NOW, heartbeat_at = NOW, ready_queue = null`
const COMPLETE = `status = 'completed', finished_at = NOW`
const FILL = `task_key, task_name, status, available_at, created_at, max_attempts, ready_queue, position, payload`

async function bareMysql(url: string, jobs: number): Promise<number> {
  const db = await mysql.createConnection({ uri: url, charset: 'utf8mb4', timezone: 'Z' })
  const at = (set: string) => set.replaceAll('NOW', 'utc_timestamp(6)')
  await db.query('drop table if exists bare')
  await db.query('create table bare like task_runs')
  for (let from = 0; from < jobs; from += 1000) await db.query(`insert into bare (${FILL}) values ${Array.from({ length: 1000 }, (_, nth) => `('bare:${from + nth}', 'job', 'pending', utc_timestamp(6), utc_timestamp(6), 3, 'default', ${from + nth}, '{"id":1}')`).join(',')}`)
  const begun = performance.now()
  for (;;) {
    await db.query('set transaction isolation level read committed')
    await db.query('start transaction')
    const [rows] = await db.query<mysql.RowDataPacket[]>(`select task_key, payload from bare where ready_queue = 'default' order by priority, position limit ${BATCH} for update skip locked`)
    const keys = rows.map((row) => row['task_key'] as string)
    if (keys.length === 0) break
    await db.query(`update bare set ${at(CLAIM)} where task_key in (?)`, [keys])
    await db.query('commit')
    await db.query(`update bare set ${at(COMPLETE)} where task_key in (?) and status = 'processing' and attempt = 1 and fence = 1`, [keys])
  }
  const seconds = (performance.now() - begun) / 1000
  await db.query('rollback')
  await db.query('drop table bare')
  await db.end()
  return seconds
}

async function barePostgres(url: string, jobs: number): Promise<number> {
  const db = new pg.Client(url)
  await db.connect()
  const at = (set: string) => set.replaceAll('NOW', 'clock_timestamp()')
  await db.query('drop table if exists bare')
  await db.query('create table bare (like task_runs including all)')
  await db.query(`insert into bare (${FILL}) select 'bare:' || n, 'job', 'pending', now(), now(), 3, 'default', n, '{"id":1}' from generate_series(1, ${jobs}) n`)
  const begun = performance.now()
  for (;;) {
    const { rows } = await db.query<{ task_key: string }>(`with s as materialized (select ctid from bare where ready_queue = 'default' order by priority, position limit ${BATCH} for update skip locked)
      update bare set ${at(CLAIM)} where ctid = any(array(select ctid from s)) returning task_key, payload`)
    if (rows.length === 0) break
    await db.query(`update bare set ${at(COMPLETE)} where task_key = any($1) and status = 'processing' and attempt = 1 and fence = 1`, [rows.map((row) => row.task_key)])
  }
  const seconds = (performance.now() - begun) / 1000
  await db.query('drop table bare')
  await db.end()
  return seconds
}

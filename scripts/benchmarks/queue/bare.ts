/** The statements that a queue cannot do without, in a bare loop through the driver: select and lock, update, commit; update, commit. */
import mysql from 'mysql2/promise'
import pg from 'pg'

const BATCH = 500

/**
 * To be called on a ledger whose jobs are done: the loop does the same ones again, in a table of its own with the same columns and
 * indexes, and writes into it what the ledger wrote.
 * @returns jobs a second
 */
export async function bareLoop(url: string): Promise<number> {
  return url.startsWith('postgres') ? barePostgres(url) : bareMysql(url)
}

const OWNER = ['instance_id', 'host', 'pid', 'process_identity', 'launcher', 'lease_seconds']
const ENQUEUED = 'task_key, task_name, queue, priority, position, concurrency_limit, max_attempts, backoff_seconds, payload, created_at, available_at'
const FILL = `insert into bare (${ENQUEUED}, status, ready_queue) select ${ENQUEUED}, 'pending', queue from task_runs`
const AN_OWNER = `select ${OWNER.join(', ')} from task_runs limit 1`
const CLAIM = `status = 'processing', attempt = attempt + 1, fence = fence + 1, started_at = NOW, heartbeat_at = NOW, ready_queue = null`
const COMPLETE = `status = 'completed', finished_at = NOW`

async function bareMysql(url: string): Promise<number> {
  const db = await mysql.createConnection({ uri: url, charset: 'utf8mb4', timezone: 'Z' })
  const at = (set: string) => set.replaceAll('NOW', 'utc_timestamp(6)')
  await db.query('drop table if exists bare')
  await db.query('create table bare like task_runs')
  const [filled] = await db.query<mysql.ResultSetHeader>(FILL)
  const [[owner]] = await db.query<mysql.RowDataPacket[]>(AN_OWNER)
  const begun = performance.now()
  for (;;) {
    await db.query('set transaction isolation level read committed')
    await db.query('start transaction')
    const [rows] = await db.query<mysql.RowDataPacket[]>(`select task_key, payload from bare where ready_queue = 'default' order by priority, position limit ${BATCH} for update skip locked`)
    const keys = rows.map((row) => row['task_key'] as string)
    if (keys.length === 0) break
    await db.query(`update bare set ${at(CLAIM)}, ? where task_key in (?)`, [owner, keys])
    await db.query('commit')
    await db.query(`update bare set ${at(COMPLETE)} where task_key in (?) and status = 'processing' and attempt = 1 and fence = 1`, [keys])
  }
  const seconds = (performance.now() - begun) / 1000
  await db.query('rollback')
  await db.query('drop table bare')
  await db.end()
  return filled.affectedRows / seconds
}

async function barePostgres(url: string): Promise<number> {
  const db = new pg.Client(url)
  await db.connect()
  const at = (set: string) => set.replaceAll('NOW', 'clock_timestamp()')
  await db.query('drop table if exists bare')
  await db.query('create table bare (like task_runs including all)')
  const { rowCount } = await db.query(FILL)
  const [owner] = (await db.query<Record<string, unknown>>(AN_OWNER)).rows
  const begun = performance.now()
  for (;;) {
    const { rows } = await db.query<{ task_key: string }>(`with s as materialized (select ctid from bare where ready_queue = 'default' order by priority, position limit ${BATCH} for update skip locked)
      update bare set ${at(CLAIM)}, ${OWNER.map((name, nth) => `${name} = $${nth + 1}`).join(', ')} where ctid = any(array(select ctid from s)) returning task_key, payload`, OWNER.map((name) => owner![name]))
    if (rows.length === 0) break
    await db.query(`update bare set ${at(COMPLETE)} where task_key = any($1) and status = 'processing' and attempt = 1 and fence = 1`, [rows.map((row) => row.task_key)])
  }
  const seconds = (performance.now() - begun) / 1000
  await db.query('drop table bare')
  await db.end()
  return rowCount! / seconds
}

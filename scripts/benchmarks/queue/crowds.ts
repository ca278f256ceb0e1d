/** What may not be claimed, by the hundred thousand: rows that a table is filled with before it is measured. */
import mysql from 'mysql2/promise'
import pg from 'pg'

export type Crowd = 'completed' | 'future' | 'blocked' | 'keys'

/** How many rows, and what is in them beside a key; `n` is the row's number. */
const CROWDS: Record<Crowd, readonly { readonly rows: number; readonly columns: Readonly<Record<string, string>> }[]> = {
  completed: [{ rows: 5_000_000, columns: { status: `'completed'`, finished_at: 'NOW', ...held(), attempt: '1' } }],
  future: [{ rows: 1_000_000, columns: { status: `'pending'`, priority: '-10', available_at: 'LATER', due_at: 'LATER' } }],
  blocked: [
    { rows: 2, columns: { status: `'processing'`, ...held(), attempt: '1', concurrency_key: `concat('busy-', n % 2)`, active_key: `concat('busy-', n % 2)` } },
    { rows: 100_000, columns: { status: `'pending'`, concurrency_key: `concat('busy-', n % 2)`, waiting_key: `concat('busy-', n % 2)`, ready_queue: `'default'`, position: 'n', priority: '-10' } },
  ],
  keys: [
    { rows: 20_000, columns: { status: `'processing'`, ...held(), attempt: '1', concurrency_key: `concat('key-', n)`, active_key: `concat('key-', n)` } },
    { rows: 20_000, columns: { status: `'pending'`, concurrency_key: `concat('key-', n)`, waiting_key: `concat('key-', n)`, ready_queue: `'default'`, position: 'n', priority: '-10' } },
  ],
}

/** Rows of one statement. */
const AT_ONCE = 100_000

function held(): Record<string, string> {
  return { instance_id: `'crowd'`, host: `'elsewhere'`, lease_seconds: '86400', started_at: 'NOW', heartbeat_at: 'NOW' }
}

/** @param size a part of all of them */
export async function fill(url: string, crowd: Crowd, size: number): Promise<void> {
  const db = await open(url)
  for (const [part, { rows, columns }] of CROWDS[crowd].entries()) {
    const all = { task_key: `concat('job:crowd-${crowd}-${part}-', n)`, task_name: `'job'`, available_at: 'NOW', created_at: 'NOW', max_attempts: '3', ...columns }
    const into = `insert into task_runs (${Object.keys(all).join(', ')}) select ${Object.values(all).join(', ')}`.replaceAll('NOW', db.now).replaceAll('LATER', db.later)
    for (let from = 0, count = Math.ceil(rows * size); from < count; from += AT_ONCE) await db.run(`${into} from ${db.numbers(from, Math.min(from + AT_ONCE, count))}`)
  }
  await db.run('analyze' + (url.startsWith('postgres') ? '' : ' table') + ' task_runs')
  await db.end()
}

interface Filler {
  readonly now: string
  readonly later: string
  /** A table with the numbers after `from` and up to `to`, as `n`. */
  numbers(from: number, to: number): string
  run(text: string): Promise<unknown>
  end(): Promise<void>
}

async function open(url: string): Promise<Filler> {
  if (url.startsWith('postgres')) {
    const client = new pg.Client(url)
    await client.connect()
    return { now: 'now()', later: `now() + interval '1 year'`, numbers: (from, to) => `generate_series(${from + 1}, ${to}) as n`, run: (text) => client.query(text), end: () => client.end() }
  }
  const connection = await mysql.createConnection(url)
  await connection.query('set session cte_max_recursion_depth = 10000000').catch(() => connection.query('set session max_recursive_iterations = 10000000'))
  return {
    now: 'utc_timestamp(6)', later: 'utc_timestamp(6) + interval 1 year',
    numbers: (from, to) => `(with recursive s as (select ${from + 1} as n union all select n + 1 from s where n < ${to}) select n from s) as numbers`,
    run: (text) => connection.query(text),
    end: () => connection.end(),
  }
}

/** A transaction somewhere that keeps its snapshot keeps every dead row: what the claim and the heartbeat read and leave behind then. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { completeMany } from '../../src/store/complete-batch.ts'
import { heartbeatMany } from '../../src/store/heartbeat-batch.ts'
import type { Place } from '../../src/store/ready-rows.ts'
import type { Store } from '../../src/store/tables.ts'
import { takeBatch, type Taken } from '../../src/store/take-batch.ts'
import { eachLedger, instance } from '../support/ledgers.ts'
import { enqueue } from '../support/queue.ts'

const DONE = 2_000
const BATCH = 500

eachLedger('under a snapshot that is held', (bench) => {
  /** A store whose last statement of a kind can be asked for. */
  async function overheard(): Promise<{ store: Store; last(word: string): pg.QueryConfig }> {
    const heard: pg.QueryConfig[] = []
    const store = await bench.openStore({ log: ({ query }) => void heard.push({ text: query.sql, values: [...query.parameters] }) })
    return { store, last: (word) => heard.findLast(({ text }) => text.includes(word))! }
  }

  if (bench.db.name === 'mariadb') {
    it('case 66: a claim that goes on behind the last one is a range that begins there, and no walk past what was done', async () => {
      const [task, { store, last }] = [bench.task(), await overheard()]
      const claim = (after?: Place) => takeBatch(store, { queue: task, tasks: [task], limit: 500, after, leaseSeconds: 60, instance: instance() })
      await enqueue(store, task, Array.from({ length: 5_000 }, (_, nth) => ({ label: String(nth) })))
      await bench.db.admin('analyze table task_runs', bench.url)
      await claim((await claim()).last)
      const { text, values } = last('skip locked')

      const client = await mysql.createConnection(bench.url)
      const [[plan]] = await client.query<mysql.RowDataPacket[]>(`explain ${text}`, values)
      await client.end()

      assert.deepEqual([plan?.['type'], plan?.['key']], ['range', 'task_runs_ready_queue'])
    })
  }
  if (bench.db.name !== 'postgres') return

  /** Sends it again, and takes it back. @returns what PostgreSQL counted of it */
  async function counted(statement: pg.QueryConfig, count: string): Promise<number> {
    const client = new pg.Client(bench.url)
    await client.connect()
    try {
      await client.query('begin; set local enable_sort = off; set local enable_bitmapscan = off; set local enable_seqscan = off')
      await client.query(statement)
      return Number((await client.query<{ n: string }>(`select ${count} as n`)).rows[0]!.n)
    } finally {
      await client.end()
    }
  }

  it('case 66: a claim that goes on behind the last one reads its own runs, not the thousands that were done under it', async (t) => {
    const holder = new pg.Client(bench.url)
    await holder.connect()
    t.after(() => holder.end())
    await holder.query('begin isolation level repeatable read')
    await holder.query('select count(*) from task_runs')
    const [task, { store, last }] = [bench.task(), await overheard()]
    const claim = (after?: Place) => takeBatch(store, { queue: task, tasks: [task], limit: BATCH, after, leaseSeconds: 60, instance: instance() })
    await enqueue(store, task, Array.from({ length: DONE }, (_, nth) => ({ label: String(nth) })))

    let place: Place | undefined
    for (let taken: Taken = await claim(); taken.runs.length > 0; taken = await claim(place)) {
      await completeMany(store, taken.runs.map((run) => ({ ...run, result: null })))
      place = taken.last
    }
    await enqueue(store, task, Array.from({ length: 10 }, (_, nth) => ({ label: `late ${nth}` })))
    const entries = `pg_stat_get_xact_tuples_returned('task_runs_ready_queue'::regclass)`

    await claim(place)
    const behind = await counted(last('skip locked'), entries)
    await claim()
    const fromTheFront = await counted(last('skip locked'), entries)

    assert.ok(behind <= 10 && fromTheFront >= DONE, `${behind} entries behind the last place, ${fromTheFront} from the front`)
  })

  it('case 66: heartbeats change no index, so that they leave nothing in one', async () => {
    const [task, { store, last }] = [bench.task(), await overheard()]
    await enqueue(store, task, [{ label: 'a' }, { label: 'b' }])
    const { runs } = await takeBatch(store, { queue: task, tasks: [task], limit: 2, leaseSeconds: 60, instance: instance() })
    await heartbeatMany(store, runs)
    const beat = last('"heartbeat_at" =')

    assert.equal(await counted(beat, `pg_stat_get_xact_tuples_updated('task_runs'::regclass)`), 2)
    assert.equal(await counted(beat, `pg_stat_get_xact_tuples_hot_updated('task_runs'::regclass)`), 2)
  })
})

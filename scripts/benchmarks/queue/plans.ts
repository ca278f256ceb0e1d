/** The plans of the queue's statements on a table with all the crowds in it: each is run as it is, and then explained with its own values. */
import { randomUUID } from 'node:crypto'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { connect } from '../../../src/dialect/connect.ts'
import { openLedger } from '../../../src/index.ts'
import { completeMany } from '../../../src/store/complete-batch.ts'
import { heartbeatMany } from '../../../src/store/heartbeat-batch.ts'
import { reap } from '../../../src/store/reap.ts'
import { SWEEP_START, sweepLine } from '../../../src/store/sweep-line.ts'
import type { Tables } from '../../../src/store/tables.ts'
import { takeBatch, type TakenRun } from '../../../src/store/take-batch.ts'
import { takeFirst } from '../../../src/store/take-first.ts'
import { look, promote } from '../../../src/store/tend-line.ts'
import { fill } from './crowds.ts'
import { drop, newLedger, type Server, type Terms } from './place.ts'

interface Statement {
  readonly text: string
  readonly values: readonly unknown[]
}

const BATCH = 500
const READY = 20 * BATCH
const INSTANCE = { host: 'here', pid: 1, processIdentity: null, launcher: 'benchmark' }

export async function plans(server: Server, { crowd: size }: Terms): Promise<void> {
  const url = await newLedger(server)
  for (const crowd of ['completed', 'future', 'blocked', 'keys'] as const) await fill(url, crowd, size)
  const heard: Statement[] = []
  const store = await connect<Tables>(url, { log: ({ query: { sql: text, parameters: values } }) => void heard.push({ text, values }) })
  const instance = { ...INSTANCE, id: randomUUID() }
  const request = { queue: 'default', tasks: ['job'], limit: BATCH, instance, leaseSeconds: 60 }

  await enqueue(url)
  while ((await takeBatch(store, request)).runs.length === 0); // The blocked ones in front are looked at once each, and parked.
  const { runs } = await takeBatch(store, request)
  const { runs: keyed } = await takeBatch(store, { ...request, queue: 'keyed' })
  const done = (of: readonly TakenRun[]) => of.map((run) => ({ ...run, result: null }))
  const moves: readonly [string, () => Promise<unknown>][] = [
    ['look', () => look(store, ['default'], ['job'])],
    ['promote', () => promote(store)],
    ['sweep', () => sweepLine(store, SWEEP_START)],
    ['take', () => takeBatch(store, request)],
    ['take the first', async () => store.updatesInOne && takeFirst(store, request)],
    ['heartbeat', () => heartbeatMany(store, runs)],
    ['complete', () => completeMany(store, done(runs))],
    ['take of keys', () => takeBatch(store, { ...request, queue: 'keyed' })],
    ['complete of keys', () => completeMany(store, done(keyed))],
    ['reap', () => reap(store)],
  ]
  const explain = await explainer(server, url)
  console.log(`plans: ${server.name}${size === 1 ? '' : `, ${size} of the size`}, ${BATCH} runs a batch`)
  for (const [move, run] of moves) {
    heard.length = 0
    await run()
    const trusting = heard.some(({ text }) => text.includes('enable_sort'))
    for (const statement of heard.filter(isPlanned)) console.log(`  ${move}: ${shortened(statement.text)}\n${await explain.plan(statement, trusting)}`)
  }
  await explain.end()
  await store.close()
  await drop(server, url)
}

/** More than is taken: without a key, and each with a key of its own. */
async function enqueue(url: string): Promise<void> {
  const ledger = await openLedger(url)
  await ledger.enqueueMany('job', Array.from({ length: READY }, () => ({})))
  await ledger.enqueueMany('job', Array.from({ length: READY }, (_, n) => ({ queue: 'keyed', concurrencyKey: `own-${n}` })))
  await ledger.close()
}

/** Of a row to insert there is no plan, and it is there by now. */
function isPlanned({ text }: Statement): boolean {
  return text.includes('task_') && !/^\s*insert/.test(text)
}

function shortened(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(/\(\s*(\?, ){3,}\?\)/g, '(?, …)').slice(0, 140)
}

interface Explainer {
  /** Runs it, takes it back, and says how it was done. @param trusting its transaction has the planner trust indexes, as a claim's has */
  plan(statement: Statement, trusting: boolean): Promise<string>
  end(): Promise<unknown>
}

async function explainer({ name }: Server, url: string): Promise<Explainer> {
  if (name === 'postgres') {
    const client = new pg.Client(url)
    await client.connect()
    const plan = async ({ text, values }: Statement, trusting: boolean) => {
      await client.query(`begin; ${trusting ? 'set local enable_sort = off; set local enable_bitmapscan = off; set local enable_seqscan = off; set local jit = off' : ''}`)
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain (analyze, costs off, timing off) ${text.replace(/^\/\*.*?\*\//, '')}`, [...values])
      await client.query('rollback')
      return rows.map((row) => `    ${row['QUERY PLAN'].slice(0, 170)}`).join('\n')
    }
    return { plan, end: () => client.end() }
  }
  const connection = await mysql.createConnection({ uri: url, timezone: 'Z' })
  const verb = name === 'mariadb' ? 'analyze' : 'explain'
  const plan = async ({ text, values }: Statement) => {
    await connection.query('begin')
    const [rows] = await connection.query<mysql.RowDataPacket[]>(`${verb} ${text}`, [...values])
    await connection.query('rollback')
    return rows.map((row) => `    ${['table', 'type', 'key', 'rows', 'r_rows', 'Extra'].map((column) => `${column}=${String(row[column])}`).join(' ')}`).join('\n')
  }
  return { plan, end: () => connection.end() }
}

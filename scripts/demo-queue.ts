/** The demonstration behind scripts/demo-queue: an import that loses two of its four workers and, for a moment, its server. */
import { execFileSync, fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sql } from 'kysely'
import { migrate, openLedger } from '../src/index.ts'
import { openStore } from '../src/runtime/open-store.ts'
import type { Store } from '../src/store/tables.ts'
import type { ImportTasks } from './demo/import-worker.ts'

const WORKERS = 4

const { values, positionals } = parseArgs({ options: { servers: { type: 'string', default: '' }, runs: { type: 'string', default: '100000' }, file: { type: 'string' } }, allowPositionals: true })
const lines = linesOf(values.file, Number(values.runs))
console.log(`${lines.length} lines, ${WORKERS} workers, two of them killed, the server restarted once.`)
let good = true
for (const server of positionals) good = (await demonstrate(server)) && good
process.exitCode = good ? 0 : 1

/** The lines of a file, or the files of all packages of this machine. */
function linesOf(file: string | undefined, count: number): string[] {
  const files = file === undefined ? globSync('/var/lib/dpkg/info/*.list') : [file]
  const all = files.flatMap((one) => readFileSync(one, 'utf8').split('\n')).filter((line) => line !== '')
  if (all.length === 0) throw new Error('there is nothing to import: name a file with --file')
  return Array.from({ length: count }, (_, n) => all[n % all.length]!)
}

async function demonstrate(server: string): Promise<boolean> {
  const url = process.env[`RUNLEDGER_TEST_${server.toUpperCase()}`]!
  await migrate(url)
  const store = await openStore(url)
  await sql`create table imported (n integer not null, line ${store.ddl.text} not null)`.execute(store.db)
  const ledger = await openLedger<ImportTasks>(url, { connectTimeout: '60s' })
  const begun = performance.now()
  await ledger.enqueueMany('import_line', lines.map((line, n) => ({ key: String(n), payload: { n, line }, maxAttempts: 10 })))
  console.log(`${server}: enqueued ${lines.length} in ${seconds(begun)} s`)
  const workBegun = performance.now()
  const workers = Array.from({ length: WORKERS }, () => fork(join(import.meta.dirname, 'demo/import-worker.ts'), [url], { stdio: 'inherit' }))
  await accidents(server, store, workers)
  await untilDone(store, lines.length)
  console.log(`${server}: all is done after ${seconds(workBegun)} s`)
  await Promise.all(workers.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null).map((worker) => (worker.kill('SIGTERM'), once(worker, 'exit'))))
  const isGood = await check(server, store)
  await ledger.close()
  await store.close()
  return isGood
}

/** At a quarter, a half and three quarters of the work. */
async function accidents(server: string, store: Store, workers: readonly ChildProcess[]): Promise<void> {
  await untilDone(store, lines.length * 0.25)
  workers[0]!.kill('SIGKILL')
  console.log(`${server}: killed worker ${workers[0]!.pid} with ${await processing(store)} runs processing`)
  await untilDone(store, lines.length * 0.5)
  execFileSync(join(import.meta.dirname, 'servers.sh'), ['restart', values.servers, server], { stdio: ['ignore', 'ignore', 'inherit'] })
  console.log(`${server}: restarted the server`)
  await untilDone(store, lines.length * 0.75)
  workers[1]!.kill('SIGKILL')
  console.log(`${server}: killed worker ${workers[1]!.pid}`)
}

async function count(store: Store, query: ReturnType<typeof sql<{ n: number | bigint | string }>>): Promise<number> {
  for (let tries = 0; ; tries++) {
    try {
      return Number((await query.execute(store.db)).rows[0]!.n)
    } catch (error) {
      if (tries === 100) throw error
      await sleep(200) // The server is on its way back.
    }
  }
}

function statusCount(store: Store, status: string): Promise<number> {
  return count(store, sql`select count(*) as n from task_runs where task_name = 'import_line' and status = ${status}`)
}

function processing(store: Store): Promise<number> {
  return statusCount(store, 'processing')
}

async function untilDone(store: Store, wanted: number): Promise<void> {
  while ((await statusCount(store, 'completed')) + (await statusCount(store, 'failed')) < wanted) await sleep(200)
}

async function check(server: string, store: Store): Promise<boolean> {
  const facts = {
    'lines imported': await count(store, sql`select count(*) as n from imported`),
    'different lines imported': await count(store, sql`select count(distinct n) as n from imported`),
    'runs completed': await statusCount(store, 'completed'),
    'runs failed': await statusCount(store, 'failed'),
    'runs processing': await processing(store),
    'runs pending': await statusCount(store, 'pending'),
    'attempts lost with their worker': await count(store, sql`select count(*) as n from task_attempts where outcome = 'lost'`),
  }
  for (const [what, n] of Object.entries(facts)) console.log(`  ${what.padEnd(36)}${String(n).padStart(8)}`)
  const isGood = facts['lines imported'] === lines.length && facts['different lines imported'] === lines.length && facts['runs completed'] === lines.length && facts['runs processing'] === 0
  console.log(isGood ? `${server}: every line was imported once, and nothing is left` : `${server}: FAILED`)
  return isGood
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(1)
}

/** A Galera cluster of three nodes (scripts/galera.sh), written to through all: a node dies under load and rejoins, then the majority dies. */
import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import mysql from 'mysql2/promise'
import { isLedgerError, migrate, openLedger, type Claim } from '../../src/index.ts'
import { Crew } from './crew.ts'
import { nowMs } from './events.ts'
import { completedKeys, judge, longestPauseMs, type Query } from './judge.ts'
import { isBroken, print } from './print.ts'
import { given, refuseWords } from '../usage.ts'

refuseWords('galera')

const WORKERS_PER_NODE = 2
const LOAD_MS = 6_000
const SCRIPT = join(import.meta.dirname, '../galera.sh')
const NODES = [1, 2, 3] as const

const folder = mkdtempSync(join(tmpdir(), 'events-'))
const servers = NODES.map((n) => new URL(given(`GALERA_${n}`, 'scripts/ha galera')))
const nodeUrls = servers.map((server) => new URL('/ledger', server).href)

const query: Query = async (sql, url) => {
  const connection = await mysql.createConnection({ uri: url!, decimalNumbers: true })
  try {
    return (await connection.query<mysql.RowDataPacket[]>(sql))[0] as Record<string, unknown>[]
  } finally {
    connection.destroy()
  }
}

/** Its own node first, then the others: as a client of a cluster would have it. */
function urlFrom(first: number): string {
  const hosts = [0, 1, 2].map((turn) => servers[(first + turn) % 3]!.host)
  return nodeUrls[first]!.replace(servers[first]!.host, hosts.join(','))
}

async function node(command: 'kill' | 'rejoin', number: number): Promise<number> {
  const begunAt = nowMs()
  await promisify(execFile)(SCRIPT, [command, process.env['GALERA_DIR']!, String(number)])
  return nowMs() - begunAt
}

/** Transactions that certification or an applied write set rolled back here. */
async function rolledBack(url: string): Promise<string> {
  const rows = await query(`show global status where variable_name in ('wsrep_local_cert_failures', 'wsrep_local_bf_aborts')`, url)
  return rows.map(({ Variable_name: name, Value: value }) => `${String(name).replace('wsrep_local_', '')} ${String(value)}`).join(', ')
}

/** Several processes at each node: only one at a time may change the schema, or the cluster locks up. */
async function migrateThroughAll(): Promise<void> {
  await query('create database ledger', servers[0]!.href)
  const applied = await Promise.all([...nodeUrls, ...nodeUrls].map((url) => migrate(url, 60_000)))
  console.log(`\nsix migrations at once through three nodes: ${applied.map(({ length }) => length).toSorted().join(' ')} applied`)
}

async function killAndRejoin(): Promise<boolean> {
  const crew = await Crew.start(folder, NODES.flatMap((_, index) => Array.from({ length: WORKERS_PER_NODE }, () => urlFrom(index))))
  const ledger = await openLedger(urlFrom(0), { connectTimeout: '30s', heartbeats: 'loop' })
  const holder = (await ledger.claim({ task: 'holder', key: 'a', lease: '20s', heartbeat: '500ms' })) as Claim
  await sleep(LOAD_MS)
  const before = await rolledBack(nodeUrls[0]!)
  const killedAt = nowMs()
  await node('kill', 1)
  await sleep(2 * LOAD_MS)
  const rejoiningAt = nowMs()
  const rejoinMs = await node('rejoin', 1)
  await sleep(LOAD_MS)
  const stoppedAt = nowMs()
  await crew.stop()
  await holder.complete()
  await ledger.close()

  await sleep(1_000) // What was committed through one node is applied on the others a moment later.
  const completed = await completedKeys(query, nodeUrls[0]!)
  const launched = await crew.launchAgain(urlFrom(0))
  const verdict = await judge(folder, query, nodeUrls[0]!, completed)
  const counts = await Promise.all(nodeUrls.map(async (url) => JSON.stringify(await query(`select count(*) as n, sum(attempt) as attempts, sum(fence) as fences, (select count(*) from task_attempts) as history from task_runs`, url))))
  print('three nodes, written to through all; node 1 killed and rejoined', verdict, {
    'keys launched again at the end': launched,
    'a holder of node 1 completed, attempt': holder.attempt,
    'rolled back at node 1 until its end': before,
    'rolled back at node 2': await rolledBack(nodeUrls[1]!),
    'rolled back at node 3': await rolledBack(nodeUrls[2]!),
    'tables alike on all nodes': String(new Set(counts).size === 1),
    'to rejoin, ms': rejoinMs,
    'longest time without a completion after the kill, ms': longestPauseMs(folder, killedAt, rejoiningAt),
    'longest time without a completion while it rejoined, ms': longestPauseMs(folder, rejoiningAt, stoppedAt),
  })
  return !isBroken(verdict) && verdict.repeated === 0 && new Set(counts).size === 1
}

async function withoutMajority(): Promise<boolean> {
  const ledger = await openLedger(nodeUrls[0]!, { connectTimeout: '15s', heartbeats: 'loop' })
  await Promise.all([node('kill', 2), node('kill', 3)])
  let started = false
  const outcome = await ledger.run({ task: 'alone', key: 'a' }, () => void (started = true)).catch((error: unknown) => error)
  await ledger.close()
  console.log(`\nnodes 2 and 3 killed at once: ${outcome instanceof Error ? outcome.message : JSON.stringify(outcome)}; the job was ${started ? 'STARTED' : 'not started'}`)
  return !started && isLedgerError(outcome) && outcome.code === 'DATABASE_UNAVAILABLE'
}

await migrateThroughAll()
const kept = [await killAndRejoin(), await withoutMajority()]
process.exit(kept.every(Boolean) ? 0 : 1)

/** Queue mode beside graphile-worker and pg-boss, against a bare loop of its own statements, and on tables full of what may not be claimed. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { migrate } from '../../src/index.ts'
import { median, shown } from './median.ts'
import { bareLoop } from './queue/bare.ts'
import { fill, type Crowd } from './queue/crowds.ts'
import type { Figures } from './queue/side.ts'

const run = promisify(execFile)
const SIDE = join(import.meta.dirname, 'queue/side.ts')
const TURNS = Number(process.env['RUNLEDGER_BENCH_TURNS'] ?? 3)
const JOBS = Number(process.env['RUNLEDGER_BENCH_JOBS'] ?? 100_000)
const SINGLES = 200
const PARTS = (process.env['RUNLEDGER_BENCH_PARTS'] ?? 'peers bare crowds').split(' ')

const servers = Object.entries({ postgres: process.env['RUNLEDGER_TEST_POSTGRES'], mariadb: process.env['RUNLEDGER_TEST_MARIADB'], mysql: process.env['RUNLEDGER_TEST_MYSQL'] }).flatMap(([name, url]) => (url === undefined ? [] : [{ name, url }]))

console.log(`Node ${process.versions.node}; medians of ${TURNS} interleaved turns; each side in a process and a database of its own`)
if (PARTS.includes('peers')) for (const { url } of servers.filter(({ name }) => name === 'postgres')) await peers(url)
if (PARTS.includes('bare')) for (const { name, url } of servers) await bare(name, url)
if (PARTS.includes('crowds')) for (const { name, url } of servers.filter((server) => server.name !== 'mysql')) await crowds(name, url)

async function peers(server: string): Promise<void> {
  const sides = { 'runledger, 24 at once': ['runledger', 'fast', JOBS], 'runledger, defaults': ['runledger', 'defaults', JOBS], 'graphile-worker, fastest': ['graphile', 'fast', JOBS], 'graphile-worker, defaults': ['graphile', 'defaults', JOBS / 10], 'pg-boss, refetching full batches': ['pgBoss', 'fast', JOBS], 'pg-boss, batches of 500': ['pgBoss', 'defaults', JOBS / 5] } as const
  const all = new Map<string, (Figures & { jobs: number; bytes: number })[]>(Object.keys(sides).map((name) => [name, []]))
  for (let turn = 0; turn < TURNS; turn++) {
    const order = turn % 2 === 0 ? Object.entries(sides) : Object.entries(sides).toReversed()
    for (const [name, [side, mode, jobs]] of order) all.get(name)!.push(await measure(server, side, mode, jobs, SINGLES))
  }
  console.log(`beside the peers, on PostgreSQL: ${JOBS} no-op jobs after a bulk enqueue, ${SINGLES} single ones at a gentle rate`)
  console.log(`  ${''.padEnd(34)}${['jobs/s', 'enqueue/s', 'p50 ms', 'p95 ms', 'p99 ms', 'CPU µs/job', 'bytes/job'].map((title) => title.padStart(11)).join('')}`)
  const middle = (name: string, of: (figures: Figures & { jobs: number; bytes: number }) => number) => median(all.get(name)!.map(of))
  for (const name of all.keys()) {
    const figures = [(f: Figures & { jobs: number }) => f.jobs / f.workSeconds, (f: Figures & { jobs: number }) => f.jobs / f.enqueueSeconds, at(0.5), at(0.95), at(0.99), (f: Figures & { jobs: number }) => (f.cpuSeconds / f.jobs) * 1e6, (f: Figures & { jobs: number; bytes: number }) => f.bytes / f.jobs]
    console.log(`  ${name.padEnd(34)}${figures.map((of) => shown(middle(name, of)).padStart(11)).join('')}`)
  }
  const rate = (name: string) => middle(name, (f) => f.jobs / f.workSeconds)
  const enqueued = (name: string) => middle(name, (f) => f.jobs / f.enqueueSeconds)
  console.log(`  jobs/s: ${shown(rate('runledger, 24 at once') / rate('graphile-worker, fastest'))} × graphile-worker's fastest, ${shown(rate('runledger, defaults') / rate('graphile-worker, defaults'))} × its defaults with ours, ${shown(rate('runledger, defaults') / rate('pg-boss, batches of 500'))} × pg-boss (${shown(rate('runledger, defaults') / rate('pg-boss, refetching full batches'))} × when it refetches); enqueue: ${shown(enqueued('runledger, defaults') / enqueued('graphile-worker, fastest'))} × addJobs`)
}

/** The latency that so large a part of them did not exceed. */
function at(part: number): (figures: Figures) => number {
  return ({ latencies }) => latencies.toSorted((a, b) => a - b)[Math.min(latencies.length - 1, Math.floor(latencies.length * part))]!
}

async function bare(name: string, server: string): Promise<void> {
  const jobs = JOBS / 5
  const [ours, theirs]: [number[], number[]] = [[], []]
  for (let turn = 0; turn < TURNS; turn++) {
    ours.push(jobs / (await measure(server, 'runledger', 'defaults', jobs, 0)).workSeconds)
    const url = await newDatabase(server)
    await migrate(url)
    theirs.push(jobs / (await bareLoop(url, jobs)))
    await drop(server, url)
  }
  console.log(`  ${name.padEnd(10)}${shown(median(ours)).padStart(8)} jobs/s, a bare loop of the same statements ${shown(median(theirs))}: ratio ${shown(median(ours) / median(theirs))}`)
}

async function crowds(name: string, server: string): Promise<void> {
  const jobs = JOBS / 5
  const empty = await newDatabase(server)
  await migrate(empty)
  for (const crowd of ['completed', 'future', 'blocked', 'keys'] as const satisfies readonly Crowd[]) {
    const full = await newDatabase(server)
    await migrate(full)
    await fill(full, crowd)
    if (crowd === 'blocked' || crowd === 'keys') await measureOn(full, 'runledger', 'defaults', 10, 0) // Each is looked at once, and parked.
    const [with_, without]: [number[], number[]] = [[], []]
    for (let turn = 0; turn < TURNS; turn++) {
      without.push(jobs / (await measureOn(empty, 'runledger', 'defaults', jobs, 0)).workSeconds)
      with_.push(jobs / (await measureOn(full, 'runledger', 'defaults', jobs, 0)).workSeconds)
    }
    console.log(`  ${name.padEnd(10)}beside ${crowd.padEnd(10)}${shown(median(with_)).padStart(8)} jobs/s, in an empty table ${shown(median(without))}: ratio ${shown(median(with_) / median(without))}`)
    await drop(server, full)
  }
  await drop(server, empty)
}

async function measure(server: string, side: string, mode: string, jobs: number, singles: number): Promise<Figures & { jobs: number; bytes: number }> {
  const url = await newDatabase(server)
  if (side === 'runledger') await migrate(url)
  const figures = await measureOn(url, side, mode, jobs, 0)
  const bytes = url.startsWith('postgres') ? await sizeOf(url) : 0
  // Alone, and afterwards: by then the system is idle.
  const { latencies } = singles === 0 ? figures : await measureOn(url, side, mode, 0, singles)
  await drop(server, url)
  return { ...figures, latencies, jobs, bytes }
}

async function measureOn(url: string, side: string, mode: string, jobs: number, singles: number): Promise<Figures> {
  const { stdout } = await run(process.execPath, [SIDE, side, mode, url, String(jobs), String(singles)], { maxBuffer: 64 * 1024 * 1024 })
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Figures
}

async function newDatabase(server: string): Promise<string> {
  const name = `bench_${randomBytes(4).toString('hex')}`
  await administer(server, `create database ${name}`)
  return new URL(`/${name}`, server).href
}

async function drop(server: string, url: string): Promise<void> {
  await administer(server, `drop database ${new URL(url).pathname.slice(1)}${server.startsWith('postgres') ? ' with (force)' : ''}`)
}

async function sizeOf(url: string): Promise<number> {
  return Number((await administer(url, 'select pg_database_size(current_database()) as size'))[0]!['size'])
}

async function administer(url: string, text: string): Promise<Record<string, unknown>[]> {
  if (url.startsWith('postgres')) {
    const client = new pg.Client(url)
    await client.connect()
    const { rows } = await client.query<Record<string, unknown>>(text)
    await client.end()
    return rows
  }
  const connection = await mysql.createConnection(url)
  await connection.query(text)
  await connection.end()
  return []
}

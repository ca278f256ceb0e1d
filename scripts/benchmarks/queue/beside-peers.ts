/** This project beside graphile-worker and pg-boss on PostgreSQL: throughput and bulk enqueue, and pick-up on an idle system. */
import { median, shown } from '../median.ts'
import { atLeast, atMost } from './aim.ts'
import { ask, drop, measureOn, newDatabase, newLedger, type Server, type Terms } from './place.ts'
import type { Figures } from './side.ts'

/** Each in its own mode, with the part of the jobs that it gets through in reasonable time. */
const SIDES = {
  'runledger, 24 at once': { side: 'runledger', mode: 'fast', part: 1 },
  'runledger, defaults': { side: 'runledger', mode: 'defaults', part: 1 },
  'graphile-worker, fastest': { side: 'graphile', mode: 'fast', part: 1 },
  'graphile-worker, defaults': { side: 'graphile', mode: 'defaults', part: 0.05 },
  'pg-boss, 500 × 4': { side: 'pgBoss', mode: 'defaults', part: 0.2 },
  'pg-boss, 500 × 4, refetching': { side: 'pgBoss', mode: 'fast', part: 1 },
} as const
type Name = keyof typeof SIDES
const NAMES = Object.keys(SIDES) as Name[]

type Measured = Figures & { readonly jobs: number; readonly bytes: number }

export async function peers(server: Server, { jobs, turns }: Terms): Promise<void> {
  const all = new Map<Name, Measured[]>(NAMES.map((name) => [name, []]))
  for (let turn = 0; turn < turns; turn++) for (const name of inTurn(NAMES, turn)) all.get(name)!.push(await throughput(server, name, jobs))
  console.log(`peers: ${jobs} no-op jobs after a bulk enqueue (graphile-worker's defaults 5 % of them, pg-boss without refetching 20 %)`)
  console.log(`  ${''.padEnd(32)}${['jobs/s', 'enqueue/s', 'CPU µs/job', 'bytes/job'].map((title) => title.padStart(12)).join('')}`)
  const middle = (name: Name, of: (figures: Measured) => number) => median(all.get(name)!.map(of))
  const rate = (name: Name) => middle(name, (f) => f.jobs / f.workSeconds)
  const enqueued = (name: Name) => middle(name, (f) => f.jobs / f.enqueueSeconds)
  for (const name of NAMES) console.log(`  ${name.padEnd(32)}${[rate(name), enqueued(name), middle(name, (f) => (f.cpuSeconds / f.jobs) * 1e6), middle(name, (f) => f.bytes / f.jobs)].map((value) => shown(value).padStart(12)).join('')}`)
  console.log(atLeast(1.3, "jobs/s against graphile-worker's fastest", rate('runledger, 24 at once') / rate('graphile-worker, fastest')))
  console.log(atLeast(10, "jobs/s with our defaults against graphile-worker's", rate('runledger, defaults') / rate('graphile-worker, defaults')))
  console.log(atLeast(8, 'jobs/s against pg-boss', rate('runledger, defaults') / rate('pg-boss, 500 × 4')))
  console.log(`  jobs/s against pg-boss with burstWhenBatchFull, which is not its default: ${shown(rate('runledger, defaults') / rate('pg-boss, 500 × 4, refetching'))}`)
  console.log(atLeast(2, "bulk enqueue against graphile-worker's addJobs", enqueued('runledger, defaults') / enqueued('graphile-worker, fastest')))
}

async function throughput(server: Server, name: Name, jobs: number): Promise<Measured> {
  const { side, mode, part } = SIDES[name]
  const url = side === 'runledger' ? await newLedger(server) : await newDatabase(server)
  const count = Math.round(jobs * part)
  const figures = await measureOn(url, side, mode, count)
  const [{ size } = {}] = await ask(url, 'select pg_database_size(current_database()) as size')
  await drop(server, url)
  return { ...figures, jobs: count, bytes: Number(size) }
}

const IDLE: readonly Name[] = ['runledger, defaults', 'graphile-worker, defaults', 'pg-boss, 500 × 4']
const SINGLES = 300

export async function latency(server: Server, { turns }: Terms): Promise<void> {
  const all = new Map<Name, number[][]>(IDLE.map((name) => [name, []]))
  for (let turn = 0; turn < turns; turn++) {
    for (const name of inTurn(IDLE, turn)) {
      const { side, mode } = SIDES[name]
      const url = side === 'runledger' ? await newLedger(server) : await newDatabase(server)
      all.get(name)!.push([...(await measureOn(url, side, mode, 0, SINGLES)).latencies].toSorted((a, b) => a - b))
      await drop(server, url)
    }
  }
  const at = (name: Name, part: number) => median(all.get(name)!.map((sorted) => sorted[Math.floor(sorted.length * part)]!))
  console.log(`latency: from the call of enqueue to the handler, ${SINGLES} single jobs, one every 10 to 30 ms`)
  for (const name of IDLE) console.log(`  ${name.padEnd(32)} p50 ${shown(at(name, 0.5))}, p95 ${shown(at(name, 0.95))}, p99 ${shown(at(name, 0.99))} ms`)
  console.log(atMost(10, 'p95', at('runledger, defaults', 0.95)))
  console.log(atMost(at('graphile-worker, defaults', 0.95), "p95, and graphile-worker's", at('runledger, defaults', 0.95)))
}

/** Forwards and backwards by turns, so that a trend of the machine falls on all. */
function inTurn<T>(names: readonly T[], turn: number): readonly T[] {
  return turn % 2 === 0 ? names : names.toReversed()
}

/**
 * `node side.ts SIDE MODE URL JOBS`: one system under measurement, in a process of its own, on a database that it has to itself.
 * Prints one line of JSON: seconds to enqueue in bulk, seconds to work them off, CPU seconds of this process, latencies.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { graphile, pgBoss } from './peers.ts'
import { runledger } from './runledger.ts'

/** A queue under measurement. */
export interface Side {
  prepare(): Promise<void>
  /** In bulk, as fast as its interface goes. */
  enqueue(jobs: number): Promise<void>
  enqueueOne(id: number): Promise<void>
  /** Begins to work; `done` hears of each job, at the start of its handler. */
  work(done: (id: number) => void): Promise<void>
  /** Resolves when all is recorded. */
  stop(): Promise<void>
}

export interface Figures {
  readonly enqueueSeconds: number
  readonly workSeconds: number
  /** Seconds until each tenth of them had begun. */
  readonly tenths: readonly number[]
  readonly cpuSeconds: number
  /** Milliseconds from the call of enqueue to the start of the handler, on an idle system. */
  readonly latencies: readonly number[]
}

const GENTLE_MS = 20

const [name = '', mode = '', url = '', jobs = '0', singles = '0'] = process.argv.slice(2)
const sides: Record<string, (mode: string, url: string) => Side> = { runledger, graphile, pgBoss }
const side = sides[name]!(mode, url)
await side.prepare()
const begun = performance.now()
if (Number(jobs) > 0) await side.enqueue(Number(jobs))
const enqueued = performance.now()
const started = new Map<number, () => void>()
let left = Number(jobs)
const { promise: all, resolve } = Promise.withResolvers<void>()
if (left === 0) resolve()
const cpu = process.cpuUsage()
const workBegun = performance.now()
const tenths: number[] = []
await side.work((id) => {
  started.get(id)?.()
  if (--left % Math.ceil(Number(jobs) / 10) === 0) tenths.push((performance.now() - workBegun) / 1000)
  if (left === 0) resolve()
})
await all
const latencies = await gentle(Number(singles))
await side.stop()
const worked = performance.now()
const used = process.cpuUsage(cpu)
console.log(JSON.stringify({ enqueueSeconds: (enqueued - begun) / 1000, workSeconds: (worked - workBegun) / 1000, cpuSeconds: (used.user + used.system) / 1e6, tenths: tenths.slice(0, 10), latencies } satisfies Figures))
process.exit(0)

async function gentle(count: number): Promise<number[]> {
  const latencies: number[] = []
  for (let nth = 0; nth < count; nth++) {
    await sleep(GENTLE_MS * (0.5 + Math.random()))
    const id = 1_000_000 + nth
    const { promise, resolve } = Promise.withResolvers<void>()
    started.set(id, resolve)
    const sent = performance.now()
    await side.enqueueOne(id)
    await promise
    latencies.push(performance.now() - sent)
  }
  return latencies
}

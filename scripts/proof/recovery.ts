/** Measures how long a run waits for its next attempt after its owner died, and a ledger after its server crashed (`scripts/prove --figures`). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger, type Ledger } from '../../src/index.ts'
import { percentile } from '../../src/proof/figures.ts'
import { program } from './programs.ts'
import type { Stage } from './stage.ts'

const HOLDER = 'scripts/proof/holding-process.ts'
const LEASE_MS = 2_000

/** Milliseconds from SIGKILL to the claim of a launch that waits, each as one number of the sorted list. */
async function afterDeath(url: string, where: 'here' | 'elsewhere', trials: number): Promise<number[]> {
  const ledger = await openLedger(url, { heartbeats: 'loop' })
  const reaper = reapEverySecond(ledger)
  const took: number[] = []
  for (let trial = 0; trial < trials; trial++) took.push(await onceAfterDeath(ledger, url, `${where}-${trial}`, where))
  await reaper.stop()
  await ledger.close()
  return took.toSorted((a, b) => a - b)
}

async function onceAfterDeath(ledger: Ledger, url: string, task: string, where: string): Promise<number> {
  const holder = spawn(process.execPath, [await program(HOLDER), task, `${LEASE_MS}ms`, where], { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, RUNLEDGER_DB: url } })
  await once(holder.stdout, 'data')
  const next = ledger.claim({ task, key: 'a', overlap: 'wait', waitTimeout: '60s', lease: LEASE_MS })
  await sleep(200 + Math.random() * 1_000)
  const diedAt = performance.now()
  holder.kill('SIGKILL')
  const claim = await next
  const took = performance.now() - diedAt
  if (claim.status !== 'claimed' || claim.attempt !== 2) throw new Error(`the next attempt of ${task} was ${claim.status}`)
  await claim.complete()
  return took
}

function reapEverySecond(ledger: Ledger): { stop(): Promise<void> } {
  let stopped = false
  const loop = (async () => {
    for (; !stopped; await sleep(1_000)) await ledger.reap()
  })()
  return { stop: () => ((stopped = true), loop) }
}

/** From the last run that was completed before a crash to the first after it, and how much of that the server itself was away. */
async function afterCrash(stage: Stage, trials: number): Promise<{ gaps: number[]; away: number[] }> {
  const { server, url } = await stage.ownServer()
  const ledger = await openLedger(url, { heartbeats: 'loop', connectTimeout: '60s' })
  const ends: number[] = []
  let stopped = false
  const working = (async () => {
    for (let n = 0; !stopped; n++) {
      await ledger.run({ task: 'work', key: String(n), maxAttempts: 5, backoff: 0 }, () => {})
      ends.push(performance.now())
    }
  })()
  const gaps: number[] = []
  const away: number[] = []
  for (let trial = 0; trial < trials; trial++) {
    await sleep(500)
    const crashedAt = performance.now()
    await server.crash()
    away.push(performance.now() - crashedAt)
    while (ends.at(-1)! < crashedAt + away.at(-1)!) await sleep(10)
    const first = ends.findIndex((at) => at > crashedAt + 1)
    gaps.push(ends[first]! - ends[first - 1]!)
  }
  stopped = true
  await working
  await ledger.close()
  return { gaps: gaps.toSorted((a, b) => a - b), away: away.toSorted((a, b) => a - b) }
}

/** Rows of a table: what, database, trials, p50, p95, max. */
export async function measureRecovery(stage: Stage, trials: number): Promise<string[][]> {
  const url = await stage.ledger()
  const row = (what: string, sorted: readonly number[]) => [what, stage.db.name, String(sorted.length), ...[0.5, 0.95, 1].map((part) => String(Math.round(percentile(sorted, part))))]
  const rows = [
    row('next attempt after the death of an owner on the same host', await afterDeath(url, 'here', trials)),
    row(`the same on another host, lease ${LEASE_MS} ms, reap every second`, await afterDeath(url, 'elsewhere', Math.ceil(trials / 2))),
  ]
  if (stage.db.name === 'sqlite') return rows
  const { gaps, away } = await afterCrash(stage, Math.ceil(trials / 4))
  return [...rows, row('without progress after a crash of the server', gaps), row('of which the server itself was away', away)]
}

/** What lies between a host and its database, in its bad moments; half of the workers have it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RoundResult } from '../../src/proof/round.ts'
import { weighted, type Random } from '../../src/proof/random.ts'
import { repeatedly } from '../../src/proof/trouble.ts'
import { faultProxy, NEVER_ARRIVES, REPLY_LOST, type Fault, type FaultProxy } from '../../test/support/fault-proxy.ts'
import type { Stage } from './stage.ts'

type Trouble = 'slow' | 'narrow' | 'reset' | 'deaf' | 'blackhole' | 'refuse'

const TROUBLES: readonly (readonly [Trouble, number])[] = [['slow', 2], ['narrow', 2], ['reset', 4], ['deaf', 2], ['blackhole', 2], ['refuse', 2]]

export async function network(stage: Stage): Promise<RoundResult> {
  const trouble = (proxy: FaultProxy) =>
    repeatedly(stage.size.faults, 200, async (_, random) => {
      await bad(proxy, weighted(random, TROUBLES), stage.leaseMs * (0.2 + 1.5 * random()))
      return true
    })
  return behindProxy(stage, trouble)
}

async function bad(proxy: FaultProxy, trouble: Trouble, ms: number): Promise<void> {
  if (trouble === 'reset') return proxy.reset()
  if (trouble === 'slow') proxy.latencyMs = 30
  else if (trouble === 'narrow') proxy.bytesPerMs = 20
  else proxy.mode = trouble
  if (trouble === 'refuse') proxy.reset()
  await sleep(ms)
  proxy.latencyMs = 0
  proxy.bytesPerMs = Infinity
  proxy.mode = 'up'
  // What was swallowed never comes; both ends find out when the line is cut, as after the time-out of a firewall.
  if (trouble === 'deaf' || trouble === 'blackhole') proxy.reset()
}

/** Rolled back for certain, in the words of each server. */
const FAILS: Record<string, readonly string[]> = { postgres: ['40001', '40P01'], mariadb: ['1213', '1205'], mysql: ['1213', '1205'] }
export const DISK_FULL: Record<string, string> = { postgres: '53100', mariadb: '1021', mysql: '1021' }
/** Of the ledger's own statements, one in so many. */
const ONE_IN = 60

export async function harmedStatements(stage: Stage): Promise<RoundResult> {
  const errors = FAILS[stage.db.name]!
  const harm = (random: Random): Fault =>
    weighted(random, [[NEVER_ARRIVES, 3], [REPLY_LOST, 3], [{ replyBytes: 7 }, 1], [{ execute: null, error: errors[Math.floor(random() * errors.length)]! }, 3]])
  return harmingSome(stage, harm)
}

/** The disk is full, says the server; nothing that it was asked for was done. */
export async function fullServerDisk(stage: Stage): Promise<RoundResult> {
  return harmingSome(stage, () => ({ execute: null, error: DISK_FULL[stage.db.name]! }))
}

async function harmingSome(stage: Stage, harm: (random: Random) => Fault): Promise<RoundResult> {
  let faults = 0
  const trouble = (proxy: FaultProxy) => async (crew: { isDone: boolean }, random: Random) => {
    proxy.onStatement = (text) => {
      if (faults >= 20 * stage.size.faults || !/task_|fenced_|commit/i.test(text) || random() > 1 / ONE_IN) return undefined
      faults++
      return harm(random)
    }
    while (!crew.isDone) await sleep(20)
    return 0
  }
  const result = await behindProxy(stage, trouble)
  return { ...result, faults }
}

async function behindProxy(stage: Stage, trouble: (proxy: FaultProxy) => NonNullable<Parameters<Stage['play']>[1]>['trouble']): Promise<RoundResult> {
  const url = await stage.ledger()
  const proxy = await faultProxy(url)
  const half = (nth: number) => (nth % 2 === 0 ? { RUNLEDGER_DB: proxy.url } : {})
  try {
    return await stage.play(url, { environment: half, trouble: trouble(proxy)! })
  } finally {
    await proxy.close()
  }
}

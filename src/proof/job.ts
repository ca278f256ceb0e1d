/** The job of the proof: tells the witness that it starts, performs an effect, writes to a resource behind a fence, and closes its run. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Claim, Ledger } from '../index.ts'
import type { Facts, HistoryWriter } from './history.ts'
import { weighted, type Random } from './random.ts'
import { scopeOfLaunch, type ProofTask, type WorkerSpec } from './worker-spec.ts'

export interface Scene {
  readonly ledger: Ledger
  readonly spec: WorkerSpec
  readonly history: HistoryWriter
  readonly witness: HistoryWriter
  readonly random: Random
}

export async function doJob(scene: Scene, task: ProofTask, claim: Claim): Promise<void> {
  const { spec, witness, random } = scene
  const who: Facts = { key: claim.taskKey, task: claim.task, attempt: claim.attempt, fence: String(claim.fence), instance: claim.instanceId, worker: spec.name }
  witness.seen('start', who)
  const dies = random() < spec.deathChance ? Math.floor(random() * 3) : null
  if (random() < 0.8 || dies === 0) await mail(scene, claim, who, dies === 0)
  await labour(scene, claim, who)
  if (dies === 1) die()
  if (random() < 0.8) await writeBehindFence(scene, scopeOfLaunch(task, claim.taskKey.slice(task.name.length + 1)).scope, claim, who)
  if (dies === 2) die()
  await close(scene, claim, who)
}

export function die(): void {
  process.kill(process.pid, 'SIGKILL')
}

/** An effect that no attempt may perform again; the witness hears of each time that it really happens. */
export async function mail({ history, witness }: Scene, claim: Claim, who: Facts, dies: boolean): Promise<void> {
  const perform = async (effect: string) => {
    witness.seen('perform', { ...who, effect })
    if (dies) die()
    await sleep(1)
    return claim.attempt
  }
  await history.act('effect', who, () => claim.effect('mail', perform), (attempt) => ({ performedBy: attempt }))
}

/** Some time passes, with heartbeats that are noted (those in the background are not), and with trouble of its own making. */
export async function labour({ spec, history, random }: Scene, claim: Claim, who: Facts): Promise<void> {
  if (spec.blockMs > 0 && random() < spec.blockChance) {
    history.seen('blocked')
    blockTheLoop(spec.blockMs)
  }
  for (let left = random() * spec.jobMs; left > 0; left -= spec.jobMs / 4) {
    await sleep(Math.min(left, spec.jobMs / 4))
    if (random() < 0.6) await history.act('heartbeat', who, () => claim.heartbeat())
  }
}

function blockTheLoop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** A resource that refuses a writer whose fence is behind; the witness hears of what got through. */
export async function writeBehindFence({ ledger, history }: Scene, resource: string, claim: Claim, who: Facts): Promise<void> {
  await history.act('guard', { ...who, resource }, () => ledger.fences.check(resource, claim.fence))
}

async function close({ spec, history, random }: Scene, claim: Claim, who: Facts): Promise<void> {
  const holds = spec.holdMs > 0 && random() < spec.holdChance
  const end = holds ? 'hold' : weighted(random, [['complete', 60], ['transaction', 15], ['fail', 15], ['release', 10]])
  if (end === 'complete') await history.act('complete', who, () => claim.complete())
  if (end === 'transaction') await history.act('complete', who, () => claim.transaction(async () => {}))
  if (end === 'hold') history.seen('held')
  if (end === 'hold') await history.act('complete', who, () => claim.transaction(() => sleep(spec.holdMs)))
  if (end === 'fail') await history.act('fail', who, () => claim.fail('bad luck'), ({ retryInMs }) => ({ retried: retryInMs !== null }))
  if (end === 'release') await history.act('release', who, () => claim.release())
}

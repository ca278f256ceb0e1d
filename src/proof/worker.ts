/** One process of the proof: runs after the keys of its tasks, or works on the queue, until all are over; or reaps until it is told to stop. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger, type Conflict, type Claim, type Launch, type Ledger, type LedgerOptions, type Queued } from '../index.ts'
import { HistoryWriter, type Facts } from './history.ts'
import { doJob, type Scene } from './job.ts'
import { workQueue } from './queue-worker.ts'
import { seeded, weighted } from './random.ts'
import { GOODBYE } from './read-history.ts'
import { scopeOfLaunch, WITNESS, type ProofTask, type WorkerSpec } from './worker-spec.ts'

export type Open = (url: string, options: LedgerOptions) => Promise<Ledger>

/** Keys that are wanted at the same time: few, so that processes meet. */
const NEAREST = 4

/** @param open how to come to a ledger; a process that is to die between two statements has its own */
export async function work(spec: WorkerSpec, url: string, open: Open = openLedger): Promise<void> {
  endWithParent(spec.parent)
  const history = new HistoryWriter(join(spec.folder, `${spec.name}.jsonl`))
  const witness = new HistoryWriter(join(spec.folder, `${WITNESS}.jsonl`))
  const ledger = await opened(spec, url, open)
  const scene: Scene = { ledger, spec, history, witness, random: seeded(spec.seed) }
  history.seen('ready', { instance: ledger.instance.id, pid: process.pid })
  if (spec.role === 'reaper') await reapUntilStopped(scene)
  else if (spec.share) await workQueue(scene, spec.share)
  else await Promise.all(Array.from({ length: spec.lanes }, () => runAfterAll(scene)))
  await ledger.close()
  history.seen(GOODBYE)
}

/** Who started us may be killed; then nobody wants to know, and nobody would ever end us. */
function endWithParent(parent: number): void {
  setInterval(() => process.ppid !== parent && process.exit(1), 500).unref()
}

async function opened({ elsewhere, heartbeats, patienceMs }: WorkerSpec, url: string, open: Open): Promise<Ledger> {
  return open(url, { heartbeats, connectTimeout: patienceMs, ...(elsewhere && { owner: { pid: process.pid, provable: false } }) })
}

async function reapUntilStopped({ ledger, history, random }: Scene): Promise<void> {
  let stopped = false
  process.once('SIGTERM', () => (stopped = true))
  while (!stopped) {
    await history.act('reap', {}, () => ledger.reap(), (reaped) => ({ reaped: reaped.length }))
    await sleep(50 + random() * 100)
  }
}

async function runAfterAll(scene: Scene): Promise<void> {
  const { spec, random } = scene
  const open = spec.tasks.map((task) => ({ task, keys: Array.from({ length: task.keys }, (_, n) => String(n + 1)) })).filter(({ keys }) => keys.length > 0)
  while (open.length > 0) {
    const { task, keys } = open[Math.floor(random() * open.length)]!
    const at = Math.floor(random() * Math.min(NEAREST, keys.length))
    if (!(await tryKey(scene, task, keys[at]!))) continue
    keys.splice(at, 1)
    if (keys.length === 0) open.splice(open.findIndex((one) => one.task === task), 1)
  }
}

/** @returns true when the key is over */
async function tryKey(scene: Scene, task: ProofTask, key: string): Promise<boolean> {
  const { ledger, spec, history, random } = scene
  const overlap = task.exclusive ? weighted(random, [['skip', 75], ['wait', 15], ['queue', 10]] as const) : 'allow'
  const launch: Launch = { task: task.name, key, overlap, lease: spec.leaseMs, maxAttempts: spec.maxAttempts, backoff: 5, ...(overlap === 'wait' && { waitTimeout: spec.leaseMs / 4 }) }
  const asked: Facts = { key: `${task.name}:${key}`, task: task.name, ...scopeOfLaunch(task, key), leaseMs: spec.leaseMs, provable: !spec.elsewhere, instance: ledger.instance.id, maxAttempts: spec.maxAttempts }
  const answer = await history.act('claim', asked, () => ledger.claim(launch), told)
  if (answer.end !== 'returned') {
    await sleep(20)
    return false
  }
  const outcome = answer.value
  if (outcome.status === 'claimed') await doJob(scene, task, outcome)
  else await sleep(2 + random() * 15)
  return outcome.status === 'conflict' && (outcome.reason === 'done' || outcome.reason === 'failed')
}

function told(outcome: Claim | Conflict | Queued): Facts {
  if (outcome.status === 'claimed') return { got: 'claimed', attempt: outcome.attempt, fence: String(outcome.fence) }
  return { got: outcome.status, reason: outcome.status === 'conflict' ? outcome.reason : null }
}

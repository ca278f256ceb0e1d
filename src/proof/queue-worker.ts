/** A worker of the queue in a proof: enqueues its share of the runs, and takes from the line until all of them are over. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isLedgerError, type Handler, type Ledger, type Worker } from '../index.ts'
import type { Scene } from './job.ts'
import { QueueJobs } from './queue-job.ts'
import { scopeOfQueued, shareOf, type QueuedTask, type Share } from './worker-spec.ts'

/** Runs of one call; the last of a share come one by one. */
const BATCH = 100

/** Enough that a run is not over for being unlucky: whatever a worker that dies had in hand has used up an attempt. */
const ATTEMPTS = 50

export async function workQueue(scene: Scene, share: Share): Promise<void> {
  const { ledger, spec } = scene
  const jobs = new QueueJobs(scene, () => worker.instance.id)
  const handlerOf = (task: QueuedTask): Handler => ({ nth }: { nth: number }, run) => jobs.perform(task, nth, run)
  const worker: Worker = await ledger.worker({
    handlers: Object.fromEntries(spec.queued.map((task) => [task.name, handlerOf(task)])),
    concurrency: 4 * spec.lanes, lease: spec.leaseMs, poll: '100ms', onEvent: (event) => jobs.heard(event),
  })
  await Promise.all(spec.queued.map((task) => enqueueShare(scene, task, share)))
  for (let over = false; !over; ) {
    await sleep(100 + scene.random() * 100)
    const answer = await scene.history.act('look', {}, () => areOver(ledger, spec.queued, share.of))
    over = answer.end === 'returned' && answer.value
  }
  await worker.stop()
}

/** In order, each batch until it is acknowledged. Whoever comes after one that died enqueues its share once more. */
async function enqueueShare({ ledger, history, random }: Scene, task: QueuedTask, share: Share): Promise<void> {
  const { first, last } = shareOf(task, share)
  for (let from = first; from <= last; ) {
    const to = last - from > BATCH ? from + BATCH - 1 : from
    const runs = Array.from({ length: to - from + 1 }, (_, index) => runOf(task, from + index))
    const answer = await history.act('enqueue', { task: task.name, from, to }, () => ledger.enqueueMany(task.name, runs), (enqueued) => ({ duplicates: enqueued.filter(({ duplicate }) => duplicate).length }))
    await sleep(answer.end === 'returned' ? random() * 10 : 20)
    if (answer.end === 'returned') from = to + 1
  }
}

function runOf(task: QueuedTask, nth: number) {
  const { scope, limit } = scopeOfQueued(task, nth)
  return { key: String(nth), payload: { nth }, maxAttempts: ATTEMPTS, backoff: '5ms', ...(task.concurrency && { concurrencyKey: { key: scope, limit } }) }
}

/** Every share is enqueued, and nothing waits or is at work. */
async function areOver(ledger: Ledger, queued: readonly QueuedTask[], shares: number): Promise<boolean> {
  for (const task of queued) {
    for (let nth = 0; nth < shares; nth++) if (!(await isThere(ledger, `${task.name}:${shareOf(task, { nth, of: shares }).last}`))) return false
    for (const status of ['pending', 'processing'] as const) if ((await ledger.runs({ task: task.name, status, limit: 1 })).length > 0) return false
  }
  return true
}

async function isThere(ledger: Ledger, taskKey: string): Promise<boolean> {
  try {
    return (await ledger.show(taskKey)).run !== null
  } catch (error) {
    if (isLedgerError(error) && error.code === 'RUN_NOT_FOUND') return false
    throw error
  }
}

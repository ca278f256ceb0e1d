/**
 * `node fixture-worker.ts URL TASK WINDOWS FOLDER`: runs after the windows 1…WINDOWS of a task until each is done, under a lease of a
 * second, and expects to be killed at any point, until FOLDER says that it is over. Two that are at work at the same time meet there, and say so.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLedgerError, openLedger, type Claim } from '../../src/index.ts'
import { Desk } from './desk.ts'

const [url = '', task = '', windows = '', folder = ''] = process.argv.slice(2)
const desk = new Desk(folder, 'of all')

const ledger = await openLedger(url, { heartbeats: 'loop', connectTimeout: '60s' })
const open = new Set(Array.from({ length: Number(windows) }, (_, index) => String(index + 1)))
while (open.size > 0) {
  for (const key of open) {
    const outcome = await ledger.claim({ task, key, overlap: 'wait', waitTimeout: '60s', lease: '1s', maxAttempts: 50, backoff: '10ms' })
    if (outcome.status === 'claimed') await work(outcome)
    else if ('reason' in outcome && outcome.reason === 'done') open.delete(key)
  }
}
await ledger.close()

async function work(claim: Claim): Promise<void> {
  desk.sitDown(claim.taskKey)
  await sleep(existsSync(join(folder, 'killed')) ? 5 : 150 * Math.random())
  const unhappy = Math.random() < 0.1
  desk.leave()
  try {
    if (unhappy) await claim.fail('bad luck')
    else await claim.complete()
  } catch (error) {
    // Too slow for its lease: the run is somebody else's by now, and that is all right, as long as it was not at the same time.
    if (!isLedgerError(error) || error.code !== 'LEASE_LOST') throw error
  }
}

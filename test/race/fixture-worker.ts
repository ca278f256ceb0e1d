/**
 * `node fixture-worker.ts URL TASK WINDOWS FOLDER`: runs after the windows 1…WINDOWS of a task until each is done, under a lease of a
 * second, and expects to be killed at any point. Two that are at work at the same time meet in FOLDER, and say so.
 */
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLedgerError, openLedger, type Claim } from '../../src/index.ts'

const [url = '', task = '', windows = '', folder = ''] = process.argv.slice(2)
const desk = join(folder, 'desk')

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
  sitDown()
  await sleep(5 + Math.random() * 40)
  const unhappy = Math.random() < 0.1
  rmSync(desk, { force: true })
  try {
    if (unhappy) await claim.fail('bad luck')
    else await claim.complete()
  } catch (error) {
    // Too slow for its lease: the run is somebody else's by now, and that is all right, as long as it was not at the same time.
    if (!isLedgerError(error) || error.code !== 'LEASE_LOST') throw error
  }
}

/** The desk has a name on it while somebody works; a dead one's may be taken away. */
function sitDown(): void {
  if (existsSync(desk)) {
    const other = readFileSync(desk, 'utf8')
    if (isAlive(other)) appendFileSync(join(folder, 'meetings'), `${process.pid} met ${other}\n`)
  }
  writeFileSync(`${desk}.${process.pid}`, String(process.pid))
  renameSync(`${desk}.${process.pid}`, desk) // whole or not at all, whenever we are killed
}

function isAlive(pid: string): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

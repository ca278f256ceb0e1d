/**
 * `node fixture-queue-worker.ts URL TASK FOLDER`: a worker of the queue TASK under a lease of two seconds that expects to be killed at any
 * point. Runs of one concurrency key meet at a desk of FOLDER, and two at one desk say so. A run counts as done when its file is there.
 */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger } from '../../src/index.ts'

const [url = '', task = '', folder = ''] = process.argv.slice(2)
const ledger = await openLedger<Record<string, { payload: { key: string } }>>(url, { connectTimeout: '60s' })
const worker = await ledger.worker({
  queues: [task], concurrency: 8, lease: '2s', poll: '200ms',
  handlers: {
    [task]: async ({ key }, run) => {
      const desk = join(folder, `desk-${key}`)
      if (existsSync(desk) && isAlive(readFileSync(desk, 'utf8'))) appendFileSync(join(folder, 'meetings'), `${run.taskKey} met ${readFileSync(desk, 'utf8')}\n`)
      writeFileSync(desk, `${process.pid} ${run.taskKey}`)
      await sleep(Math.random() * 20)
      rmSync(desk, { force: true })
      if (Math.random() < 0.05) throw new Error('bad luck')
    },
  },
})
process.on('SIGTERM', () => void worker.stop().then(() => ledger.close()))
process.send?.({ ready: true })

/** A desk left by somebody who was killed is nobody's. */
function isAlive(owner: string): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${owner.split(' ')[0]}/stat`, 'utf8'))
  } catch {
    return false
  }
}

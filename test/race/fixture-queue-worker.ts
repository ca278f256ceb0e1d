/**
 * `node fixture-queue-worker.ts URL TASK FOLDER`: a worker of the queue TASK under a lease of two seconds that expects to be killed at any
 * point. Runs of one concurrency key meet at a desk of FOLDER, and two at one desk say so.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger } from '../../src/index.ts'
import { Desk } from './desk.ts'

const [url = '', task = '', folder = ''] = process.argv.slice(2)
const ledger = await openLedger<Record<string, { payload: { key: string } }>>(url, { connectTimeout: '60s' })
const worker = await ledger.worker({
  queues: [task], concurrency: 8, lease: '2s', poll: '200ms',
  handlers: {
    [task]: async ({ key }, run) => {
      const desk = new Desk(folder, key)
      desk.sitDown(run.taskKey)
      await sleep(Math.random() * 20)
      desk.leave()
      if (Math.random() < 0.05) throw new Error('bad luck')
    },
  },
})
process.on('SIGTERM', () => void worker.stop().then(() => ledger.close()))
process.send?.({ ready: true })

/**
 * `node fixture-blocked.ts URL TASK LEASE_MS HUNG_AFTER`: a worker, with heartbeats on their thread, whose handler blocks the event loop for
 * three leases. Says `ready` once its thread has renewed a lease, and `ended` with what became of the next run.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger } from '../../../src/index.ts'

const [url = '', task = '', lease = '', hungAfter = ''] = process.argv.slice(2)
const leaseMs = Number(lease)
let seen = 0
const ledger = await openLedger<Record<string, { payload: 'warm' | 'block' }>>(url, { heartbeats: 'thread' })
const worker = await ledger.worker({
  queues: [task], lease: leaseMs, poll: '100ms', hungAfter: hungAfter as '10m',
  handlers: {
    [task]: async (payload) => {
      if (payload === 'warm') await sleep(leaseMs / 2)
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3 * leaseMs)
    },
  },
  onEvent: ({ event }) => {
    if (event === 'completed' || event === 'lost') process.send!(seen++ === 0 ? { ready: event } : { ended: event })
  },
})
await ledger.enqueue(task, { key: 'warm', queue: task, payload: 'warm' })
process.on('disconnect', () => void worker.stop().then(() => ledger.close()))

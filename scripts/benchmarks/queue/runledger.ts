/** This project, as it is shipped: its defaults, or the concurrency that its fastest rival is measured with. */
import type { Ledger, Worker } from '../../../src/index.ts'
import type { Side } from './side.ts'

const { openLedger } = (await import(new URL('../../../dist/src/index.js', import.meta.url).href)) as typeof import('../../../src/index.ts')

export function runledger(mode: string, url: string): Side {
  let ledger: Ledger
  let worker: Worker
  return {
    async prepare() {
      ledger = await openLedger(url)
    },
    async enqueue(jobs) {
      await ledger.enqueueMany('job', Array.from({ length: jobs }, (_, id) => ({ payload: { id } })))
    },
    enqueueOne: async (id) => void (await ledger.enqueue('job', { payload: { id } })),
    async work(done) {
      worker = await ledger.worker({ handlers: { job: async ({ id }: { id: number }) => done(id) }, ...(mode === 'fast' && { concurrency: 24 }) })
    },
    async stop() {
      await worker.stop()
      await ledger.close()
    },
  }
}

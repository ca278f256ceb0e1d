/** `node import-worker.ts URL`: imports lines until it is told to stop, each in the transaction that completes its run. */
import { sql } from 'kysely'
import { openLedger } from '../../src/index.ts'

export interface ImportTasks {
  import_line: { payload: { n: number; line: string } }
}

const [url = ''] = process.argv.slice(2)
const ledger = await openLedger<ImportTasks>(url, { connectTimeout: '60s' })
const worker = await ledger.worker({
  lease: '5s', concurrency: 16,
  handlers: {
    import_line: async ({ n, line }, run) => {
      await run.transaction((tx) => sql`insert into imported (n, line) values (${n}, ${line})`.execute(tx))
    },
  },
  onEvent: ({ event }) => {
    if (event === 'degraded' || event === 'connected') process.send?.({ event, pid: process.pid })
  },
})
process.on('SIGTERM', () => void worker.stop().then(() => ledger.close()).then(() => process.exit(0)))
process.on('disconnect', () => process.exit(1)) // The demonstration is over, however it ended.

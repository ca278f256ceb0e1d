/** `node fixture-keeper.ts URL prune|reap TASK`: says `ready`, waits for a word, does it once and says how many rows it `took`. */
import { openLedger } from '../../src/index.ts'

const [url = '', what, task = ''] = process.argv.slice(2)
const ledger = await openLedger(url, { heartbeats: 'loop', connectTimeout: '30s' })
process.send!({ ready: true })
process.once('message', () => void work().catch((error: unknown) => process.send!({ error: String(error) })))

async function work(): Promise<void> {
  let took = 0
  if (what === 'reap') took = (await ledger.reap()).length
  else for await (const { runs } of ledger.upkeep.prune({ olderThan: '30d', task, batch: 100 })) took += runs
  await ledger.close()
  process.send!({ took }, () => process.exit())
}

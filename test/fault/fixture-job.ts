/** A process with a job: it claims `task:key`, works until it is told to complete, and says how that went. */
import { once } from 'node:events'
import { openLedger } from '../../src/runtime/ledger.ts'

const [url = '', task = '', key = '', lease = ''] = process.argv.slice(2)

const ledger = await openLedger(url, { connectTimeout: '20s' })
let renewed = 0
const claim = await ledger.claim({ task, key, lease, heartbeat: '150ms' })
if (claim.status !== 'claimed') throw new Error(claim.status)
claim.onRenewed(() => process.send!({ renewed: ++renewed }))
claim.signal.addEventListener('abort', () => process.send!({ error: String(claim.signal.reason) }))
process.send!({ claimed: String(claim.fence) })

await once(process, 'message')
await claim.complete()
await ledger.close()
process.send!({ completed: String(claim.fence) })
process.disconnect()

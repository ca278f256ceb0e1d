/** Holds a run until it is killed: RUNLEDGER_DB, and as arguments task, lease, and `elsewhere` where nobody may be able to prove its death. */
import { openLedger } from '../../src/index.ts'

const parent = process.ppid
const [task = '', lease = '', where] = process.argv.slice(2)
const ledger = await openLedger(process.env['RUNLEDGER_DB']!, { heartbeats: 'loop', ...(where === 'elsewhere' && { owner: { pid: process.pid, provable: false } }) })
const claim = await ledger.claim({ task, key: 'a', lease, maxAttempts: 3 })
process.stdout.write(`${claim.status}\n`)
setInterval(() => process.ppid !== parent && process.exit(1), 500)

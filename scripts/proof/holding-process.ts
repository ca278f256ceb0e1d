/** Holds a run until it is killed: RUNLEDGER_DB, and as arguments task, lease, and `elsewhere` where nobody may be able to prove its death. */
import { openLedger } from '../../src/index.ts'
import { given, refuse } from '../usage.ts'

const parent = process.ppid
const [task = '', lease = '', where] = process.argv.slice(2)
if (task === '' || lease === '') refuse('this program is started by scripts/prove --figures')
const ledger = await openLedger(given('RUNLEDGER_DB', 'scripts/prove --figures'), { heartbeats: 'loop', ...(where === 'elsewhere' && { owner: { pid: process.pid, provable: false } }) })
const claim = await ledger.claim({ task, key: 'a', lease, maxAttempts: 3 })
process.stdout.write(`${claim.status}\n`)
setInterval(() => process.ppid !== parent && process.exit(1), 500)

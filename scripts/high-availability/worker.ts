/** `node worker.ts URL FILE NAME SERVICE`: launches jobs until it is told to stop, whatever happens to the database. */
import { openLedger } from '../../src/index.ts'
import { recordTo } from './events.ts'
import { launch, raceLaunch, turnLaunch } from './work.ts'
import { refuse } from '../usage.ts'

const [url = '', file = '', name = '', service = ''] = process.argv.slice(2)
if (service === '' || !process.send) refuse('this program is started by scripts/ha')
let stopping = false
process.on('message', () => (stopping = true))

const record = recordTo(file)
const ledger = await openLedger(url, { connectTimeout: '30s', heartbeats: 'loop' })
process.send('ready')
for (let n = 1; !stopping; n++) {
  await launch(ledger, raceLaunch(n), record, service)
  await launch(ledger, turnLaunch(name, n), record, service)
}
await ledger.close()
process.disconnect()

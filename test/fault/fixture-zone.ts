/** A host in some time zone: it runs the window of an instant, or only reads the run, and says what instants it sees. */
import { every } from '../../src/model/window/schedule.ts'
import { openLedger } from '../../src/runtime/ledger.ts'

const [url = '', task = '', at = '', does = ''] = process.argv.slice(2)

const ledger = await openLedger(url)
if (does === 'claim') await ledger.claim({ task, window: every('1h', 'UTC'), at: new Date(at) })
const [run] = await ledger.runs({ task })
process.send!({ instants: [run!.windowStart, run!.windowEnd, run!.startedAt, run!.heartbeatAt, run!.createdAt].map((instant) => instant!.getTime()), offset: new Date('2026-01-01T12:00Z').getTimezoneOffset() })
await ledger.close()
process.disconnect()

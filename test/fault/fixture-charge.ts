/** One window of a billing job, killed at one point of it: node fixture-charge.ts DATABASE SERVICE LABEL DIE_AT */
import { billOne } from './bill-one.ts'
import { openDyingLedger } from './dying-ledger.ts'

const [database = '', service = '', label = '', dieAt = '0'] = process.argv.slice(2)
const { ledger, point } = await openDyingLedger(database, Number(dieAt))
await billOne(ledger, service, label, point)
process.exit(0) // not ledger.close(): whatever it would say to the database is no part of this

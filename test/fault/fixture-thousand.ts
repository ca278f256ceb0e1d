/** Ten windows of a hundred charges each, killed at one point of them: node fixture-thousand.ts DATABASE SERVICE DIE_AT */
import { sql } from 'kysely'
import { charge, wasCharged } from '../../examples/payments/client.ts'
import type { Claim } from '../../src/index.ts'
import { openDyingLedger } from './dying-ledger.ts'
import { CENTS, CUSTOMERS, WINDOWS } from './thousand.ts'

const [database = '', service = '', dieAt = '0'] = process.argv.slice(2)
const { ledger, point } = await openDyingLedger(database, Number(dieAt))
for (const window of WINDOWS) {
  const claim = await ledger.claim({ task: 'billing', key: window, overlap: 'allow', maxAttempts: 100 })
  if (claim.status === 'claimed') await bill(claim, window)
}
await ledger.close()
process.exit(0)

/** Ten at a time, so that a kill leaves several in doubt at once. */
async function bill(claim: Claim, window: string): Promise<void> {
  let sum = 0
  for (let from = 0; from < CUSTOMERS.length; from += 10) {
    const receipts = await Promise.all(CUSTOMERS.slice(from, from + 10).map((customer) => chargeOnce(claim, window, customer)))
    for (const { cents } of receipts) sum += cents
  }
  await claim.transaction(async (tx) => void (await sql`insert into bookings (label, charge, cents) values (${window}, 0, ${sum})`.execute(tx)))
}

function chargeOnce(claim: Claim, window: string, customer: string) {
  const perform = async (key: string) => {
    const charged = await charge(service, key, `${window}/${customer}`, CENTS(window, customer))
    point()
    return charged
  }
  // Half of them trust the key of the service, half ask it.
  return claim.effect(`charge:${customer}`, perform, { onDoubt: customer.endsWith('7') || customer.endsWith('2') ? 'repeat' : ({ effectKey }) => wasCharged(service, effectKey) })
}

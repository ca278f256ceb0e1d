/** The billing of one customer as a run: charged at the service, then booked together with the completion. */
import { sql } from 'kysely'
import { charge } from '../../examples/payments/client.ts'
import type { Ledger } from '../../src/index.ts'

/** @param point called where the service has answered and nothing is recorded yet */
export async function billOne(ledger: Ledger, service: string, label: string, point: () => void = () => {}): Promise<void> {
  const claim = await ledger.claim({ task: 'billing', key: label, overlap: 'allow', maxAttempts: 10 })
  if (claim.status !== 'claimed') throw new Error(`not claimed: ${claim.status === 'conflict' ? claim.reason : claim.status}`)
  const receipt = await claim.effect('charge', async (key) => {
    const charged = await charge(service, key, label, 995)
    point()
    return charged
  })
  await claim.transaction(async (tx) => void (await sql`insert into bookings (label, charge, cents) values (${label}, ${receipt.id}, ${receipt.cents})`.execute(tx)))
}

/**
 * One window of a billing job: charges five customers, each once, and keeps their statement up to date under its fence.
 *   node examples/payments/billing-job.ts WINDOW      with RUNLEDGER_DB, PAYMENTS_URL and STATEMENTS (a SQLite file)
 * Exit codes: 0 done, now or before; 73 somebody else is at it; 75 lease lost; 76 an effect is in doubt; 77 stale fence.
 */
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { fence, isLedgerError, openLedger, type Claim } from '../../src/index.ts'
import { charge } from './client.ts'
import { CUSTOMERS, centsOf } from './tariff.ts'

const EXIT: Readonly<Record<string, number>> = { LEASE_LOST: 75, EFFECT_IN_DOUBT: 76, STALE_FENCE: 77, DATABASE_UNAVAILABLE: 69 }
const [window = ''] = process.argv.slice(2)
const { RUNLEDGER_DB = '', PAYMENTS_URL = '', STATEMENTS = '' } = process.env

let refused = false
const ledger = await openLedger(RUNLEDGER_DB, { heartbeats: 'loop' })
const statements = new DatabaseSync(STATEMENTS, { timeout: 60_000 })
try {
  // A lease as short as this is for a demonstration: a paused job is to lose it while you watch.
  const outcome = await ledger.run({ task: 'billing', key: window, overlap: 'allow', lease: '2s', heartbeat: '200ms', maxAttempts: 100, backoff: 0 }, bill)
  process.exitCode = outcome.status === 'conflict' && outcome.reason !== 'done' ? 73 : 0
} catch (error) {
  if (!isLedgerError(error)) throw error
  console.error(error.message)
  // The claim of a refused writer is lost as well, and run() says so; that its write was refused is the better answer.
  process.exitCode = refused ? EXIT['STALE_FENCE'] : (EXIT[error.code] ?? 1)
} finally {
  statements.close()
  await ledger.close()
}

async function bill(claim: Claim): Promise<void> {
  process.stdout.write(`attempt ${claim.attempt} of ${claim.taskKey}\n`)
  let sum = 0
  for (const customer of CUSTOMERS) {
    const receipt = await claim.effect(`charge:${customer}`, (key) => charge(PAYMENTS_URL, key, `${window}/${customer}`, centsOf(window, customer)))
    sum += receipt.cents
    await sleep(40) // The rest of the work; a pause that falls here wakes up with a sum of its own, and writes.
    await writeStatement(sum, claim.fence)
  }
}

/** The store of the statements knows nothing of leases. It refuses whoever is behind. */
async function writeStatement(sum: number, token: bigint): Promise<void> {
  statements.exec('begin immediate')
  try {
    await fence.guard(statements, window, token)
    statements.prepare('insert into statements (period, cents) values (?, ?) on conflict (period) do update set cents = excluded.cents').run(window, sum)
    statements.exec('commit')
  } catch (error) {
    statements.exec('rollback')
    refused = isLedgerError(error) && error.code === 'STALE_FENCE'
    throw error
  }
}

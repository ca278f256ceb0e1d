/** The work of the demonstrations: a job that charges through an effect where there is a service, and says what it does. */
import { setTimeout as sleep } from 'node:timers/promises'
import { charge, wasCharged } from '../../examples/payments/client.ts'
import { isLedgerError, type Claim, type Launch, type Ledger } from '../../src/index.ts'
import type { Recorder } from './events.ts'

const LEASE = { lease: '20s', heartbeat: '500ms', maxAttempts: 5, backoff: 0 } as const

/** All launch the same keys: one of them may win each. */
export const raceLaunch = (n: number): Launch => ({ task: 'race', key: String(n).padStart(6, '0'), overlap: 'allow', ...LEASE })

/** Everybody has keys of its own, and only one run of the task may be processing. */
export const turnLaunch = (name: string, n: number): Launch => ({ task: 'turn', key: `${name}-${n}`, overlap: 'skip', ...LEASE })

export async function launch(ledger: Ledger, what: Launch, record: Recorder, service: string): Promise<void> {
  try {
    const claim = await ledger.claim(what)
    if (claim.status !== 'claimed') return
    record('started', claim)
    if (service !== '' && claim.task === 'race') await chargeOnce(claim, record, service)
    await sleep(2 + Math.random() * 6)
    record('ended', claim)
    await claim.complete()
    record('acknowledged', claim)
  } catch (error) {
    record('refused', { code: isLedgerError(error) ? error.code : String(error) })
    await sleep(20)
  }
}

function chargeOnce(claim: Claim, record: Recorder, service: string): Promise<unknown> {
  return claim.effect('charge', async (key) => {
    const charged = await charge(service, key, claim.taskKey, 995)
    record('performed', claim)
    return charged
  }, { onDoubt: ({ effectKey }) => wasCharged(service, effectKey) })
}

/** Ledgers with a clock that tests move, and claims on them. */
import assert from 'node:assert/strict'
import { isLedgerError, migrate, openLedger, type Claim, type ErrorCode, type Ledger, type LedgerError } from '../../src/index.ts'
import type { TestDatabase } from '../support/databases.ts'

export interface Scene {
  readonly url: string
  readonly ledger: Ledger
  /** Another process would have one of its own. */
  readonly other: Ledger
  readonly clock: { offsetMs: number }
  close(): Promise<void>
}

export async function openTwo(db: TestDatabase): Promise<Scene> {
  const url = await db.url()
  await migrate(url)
  const clock = { offsetMs: 0 }
  const [ledger, other] = [await openLedger(url, { clock }), await openLedger(url, { clock })]
  return { url, ledger, other, clock, close: async () => void (await Promise.all([ledger.close(), other.close()])) }
}

let count = 0

/** A claim of a run of its own, or of the one named. */
export async function claimOf(ledger: Ledger, key = `run-${++count}`, task = 'billing'): Promise<Claim> {
  const outcome = await ledger.claim({ task, key, overlap: 'allow', maxAttempts: 20 })
  if (outcome.status !== 'claimed') assert.fail(`not claimed: ${JSON.stringify(outcome)}`)
  return outcome
}

/** The next attempt at the same run, after the lease of this one. */
export async function takeOver({ other, clock }: Scene, claim: Claim): Promise<Claim> {
  clock.offsetMs += 120_000
  return claimOf(other, claim.taskKey.slice(claim.task.length + 1), claim.task)
}

export async function rejectsWith(code: ErrorCode, promise: Promise<unknown>): Promise<LedgerError> {
  const error = await promise.then((value) => assert.fail(`did not reject, gave ${JSON.stringify(value)}`), (error: unknown) => error)
  if (!isLedgerError(error)) throw error
  assert.equal(error.code, code, error.message)
  return error
}

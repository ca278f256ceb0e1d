/** What a pooler refuses, it refuses for good: another server is not asked for it. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { LedgerNames } from '../../src/dialect/ledger-names.ts'
import { connectionProblem, diagnose } from '../../src/dialect/postgres-errors.ts'

for (const message of ['no such database: app', 'server login failed: FATAL password authentication failed for user "app"']) {
  it(`case 63: «${message}» is a refusal and no lost connection`, () => {
    const error = Object.assign(new Error(message), { code: '08P01' })
    assert.deepEqual([diagnose(error, new LedgerNames(), 'public').kind, connectionProblem(error)], ['refused', undefined])
  })
}

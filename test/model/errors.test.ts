/** Errors carry a stable code, the facts and the cause; one line of a log is enough to know what broke. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { invalidOption, isLedgerError, LedgerError } from '../../src/model/errors.ts'

describe('errors', () => {
  it('the message begins with the code, and the facts are fields', () => {
    const cause = new Error('driver')
    const error = new LedgerError('LEASE_LOST', 'daily:one attempt 3', { attempt: 3, fence: 7n }, cause)
    assert.deepEqual([error.name, error.code, error.message, error.facts, error.cause], ['LedgerError', 'LEASE_LOST', 'LEASE_LOST: daily:one attempt 3', { attempt: 3, fence: 7n }, cause])
    assert.match(error.stack!, /^LedgerError: LEASE_LOST: daily:one/)
  })

  it('without a cause there is none', () => {
    assert.equal('cause' in new LedgerError('INTERNAL', 'x'), false)
    assert.equal(new LedgerError('INTERNAL', 'x', {}, null).cause, null)
  })

  it('an error of another copy of the package is recognised, anything else is not', () => {
    const ofAnotherCopy = Object.assign(new Error('LEASE_LOST: x'), { name: 'LedgerError', code: 'LEASE_LOST', facts: {} })
    assert.equal(isLedgerError(ofAnotherCopy), true)
    for (const other of [new Error('LEASE_LOST: x'), { name: 'LedgerError', code: 'LEASE_LOST', facts: {} }, null, undefined, 'LEASE_LOST']) assert.equal(isLedgerError(other), false)
  })

  it('a refused option is named in the message and in the facts', () => {
    const error = invalidOption('lease', 'must be longer')
    assert.deepEqual([error.code, error.message, error.facts], ['INVALID_OPTION', 'INVALID_OPTION: lease: must be longer', { option: 'lease' }])
  })
})

/** Asserts that bad input is refused at the door, naming its option. */
import assert from 'node:assert/strict'
import { isLedgerError } from '../../../src/model/errors.ts'

/** `work` throws INVALID_OPTION for `option`, in one line that matches `pattern`. */
export function assertRefused(work: () => unknown, option: string, pattern: RegExp): void {
  assert.throws(work, (error: unknown) => {
    assert.ok(isLedgerError(error), String(error))
    assert.equal(error.code, 'INVALID_OPTION')
    assert.equal(error.facts['option'], option)
    assert.match(error.message, pattern)
    assert.doesNotMatch(error.message, /\n/)
    return true
  })
}

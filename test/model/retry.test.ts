/** Attempts and the pause between them. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { backoffMs, retryTerms } from '../../src/model/retry.ts'

describe('retry', () => {
  it('without a word of the caller a crash is survived twice, a failure is final', () => {
    assert.deepEqual(retryTerms(undefined), { maxAttempts: 3, afterFailure: false, backoffMs: 10_000 })
  })

  it('a manual run is not repeated unless asked for', () => {
    assert.equal(retryTerms(undefined, undefined, true).maxAttempts, 1)
    assert.equal(retryTerms(2, undefined, true).maxAttempts, 2)
  })

  it('attempts that were asked for are made after failures too', () => {
    assert.deepEqual(retryTerms(5, '1m'), { maxAttempts: 5, afterFailure: true, backoffMs: 60_000 })
    assert.equal(retryTerms(1).afterFailure, true)
  })

  for (const attempts of [0, -1, 1.5, NaN, Infinity, 1001, '3' as unknown as number]) {
    it(`${String(attempts)} attempts are refused`, () => assert.throws(() => retryTerms(attempts), { code: 'INVALID_OPTION', message: /^INVALID_OPTION: max-attempts: / }))
  }

  it('a backoff of nothing is one, a negative one is not', () => {
    assert.equal(backoffMs(retryTerms(3, 0), 1, 0.5), 0)
    assert.throws(() => retryTerms(3, -1), { code: 'INVALID_OPTION' })
  })

  it('doubles with each attempt behind us, up to an hour', () => {
    const terms = retryTerms(20, '10s')
    assert.deepEqual([1, 2, 3, 4, 9, 10, 20].map((attempt) => backoffMs(terms, attempt, 0)), [10_000, 20_000, 40_000, 80_000, 2_560_000, 3_600_000, 3_600_000])
  })

  it('one that is longer than an hour from the start stays what it is', () => {
    const terms = retryTerms(1000, '2h')
    assert.deepEqual([1, 2, 1000].map((attempt) => backoffMs(terms, attempt, 0)), [7_200_000, 7_200_000, 7_200_000])
  })

  it('is spread by a tenth at most, never shorter, and always a whole number that a database can add', () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: 86_400_000 }), fc.integer({ min: 1, max: 1000 }), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (backoff, attempt, random) => {
      const terms = retryTerms(1000, backoff)
      const [least, pause] = [backoffMs(terms, attempt, 0), backoffMs(terms, attempt, random)]
      assert.ok(Number.isSafeInteger(pause) && pause >= least && pause <= least * 1.1 + 1)
      assert.ok(attempt === 1 || least >= backoffMs(terms, attempt - 1, 0))
    }))
  })
})

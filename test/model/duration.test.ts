/** Durations as people write them; anything that is not clearly one is refused by name. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { durationMs, formatDuration, MAX_DURATION_MS } from '../../src/model/duration.ts'

describe('duration', () => {
  const accepted: [string | number, number][] = [
    ['250ms', 250], ['90s', 90_000], ['15m', 900_000], ['2h', 7_200_000], ['30d', 2_592_000_000], ['1w', 604_800_000],
    ['1.5h', 5_400_000], ['0.5s', 500], ['007s', 7000], [1, 1], [90_000, 90_000], [1.4, 1], ['3650d', MAX_DURATION_MS],
  ]
  for (const [written, ms] of accepted) {
    it(`${JSON.stringify(written)} is ${ms} ms`, () => assert.equal(durationMs('lease', written), ms))
  }

  for (const written of ['5', '', ' 5s', '5s ', '5 s', '5S', 's', '-5s', '+5s', '1h30m', '.5s', '5.s', '1e3s', '0x5s', '５s', 'PT5S', 'Infinity', '3651d', '99999999999w', NaN, Infinity, -Infinity, -1, 1e12, '0s', 0, 0.4]) {
    it(`case 81: ${JSON.stringify(written)}${typeof written === 'number' ? ` (${written})` : ''} is refused, and the option is named`, () => {
      assert.throws(() => durationMs('lease', written), (error: Error & { code?: string; facts?: object }) => {
        assert.match(error.message, /^INVALID_OPTION: lease: must be /)
        assert.deepEqual([error.code, error.facts], ['INVALID_OPTION', { option: 'lease' }])
        return true
      })
    })
  }

  it('a bare number in text is refused with words that say what to write', () => {
    assert.throws(() => durationMs('lease', '5'), { message: 'INVALID_OPTION: lease: must be a number with a unit (ms, s, m, h, d, w), such as 90s or 1.5h, got "5"' })
  })

  it('zero is a duration only where it may be', () => {
    for (const zero of [0, '0s', '0ms', 0.4]) assert.equal(durationMs('backoff', zero, { zero: true }), 0)
    assert.throws(() => durationMs('backoff', -0.6, { zero: true }), { code: 'INVALID_OPTION' })
  })

  it('a refused text is not repeated at any length', () => {
    assert.throws(() => durationMs('lease', 'x'.repeat(1_000_000)), (error: Error) => error.message.length < 200)
  })

  it('is written in its largest whole unit', () => {
    assert.deepEqual([1, 1500, 90_000, 60_000, 5_400_000, 3_600_000, 86_400_000, 604_800_000, 0].map(formatDuration), ['1ms', '1500ms', '90s', '1m', '90m', '1h', '1d', '1w', '0ms'])
  })

  it('what is written is read back as the same', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: MAX_DURATION_MS }), (ms) => assert.equal(durationMs('lease', formatDuration(ms)), ms)))
  })
})

/** A lease has room for three heartbeats, or it is no lease. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { DEFAULT_LEASE_MS, leaseTerms } from '../../src/model/lease.ts'

describe('lease', () => {
  it('lasts a minute unless asked otherwise, and is renewed five times in it', () => {
    assert.deepEqual(leaseTerms(), { leaseMs: DEFAULT_LEASE_MS, heartbeatMs: DEFAULT_LEASE_MS / 5 })
    assert.deepEqual(leaseTerms('2s'), { leaseMs: 2000, heartbeatMs: 400 })
  })

  it('case 81: exactly three heartbeats are enough, a little less is not', () => {
    assert.deepEqual(leaseTerms('30s', '10s'), { leaseMs: 30_000, heartbeatMs: 10_000 })
    assert.throws(() => leaseTerms(29_999, '10s'), { code: 'INVALID_OPTION', message: 'INVALID_OPTION: lease: 29999ms is shorter than 3 heartbeats of 10s' })
    assert.throws(() => leaseTerms('30s', '30s'), { code: 'INVALID_OPTION' })
  })

  for (const lease of [0, -1, NaN, Infinity, '5', '0s', 1e12, '499ms', 1]) {
    it(`case 81: a lease of ${String(lease)} is refused`, () => assert.throws(() => leaseTerms(lease), { code: 'INVALID_OPTION', message: /^INVALID_OPTION: lease: / }))
  }

  for (const heartbeat of [0, -1, NaN, '5', 1e12]) {
    it(`case 81: a heartbeat of ${String(heartbeat)} is refused`, () => assert.throws(() => leaseTerms('1h', heartbeat), { code: 'INVALID_OPTION' }))
  }

  it('whatever is accepted has room for three heartbeats', () => {
    fc.assert(fc.property(fc.integer({ min: 500, max: 10_000_000 }), (lease) => {
      const { leaseMs, heartbeatMs } = leaseTerms(lease)
      assert.ok(heartbeatMs > 0 && 3 * heartbeatMs <= leaseMs)
    }))
  })
})

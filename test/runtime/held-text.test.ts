/** What the thread of the heartbeats is told: the runs and names that went in come out. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { heldOf, heldText, namesOf, namesText } from '../../src/runtime/held-text.ts'

it('runs come through as they are, with any key that is allowed and a fence beyond 2^53', () => {
  const runs = ['a:b', 'a:with two  spaces', 'a:💥 é:/#?'].map((taskKey, nth) => ({ of: { taskKey, instanceId: '0199a3b4-7c2e-7000-8000-000000000000', attempt: nth + 1, fence: 2n ** 60n + BigInt(nth) }, claimedAt: 123_456.789 + nth }))
  assert.deepEqual(heldOf(heldText(runs)), runs)
  assert.deepEqual(heldOf(heldText([])), [])
})

it('names come through as they are', () => {
  assert.deepEqual(namesOf(namesText(['1 a:b', '2 a:with two  spaces'])), ['1 a:b', '2 a:with two  spaces'])
  assert.deepEqual(namesOf(namesText([])), [])
})

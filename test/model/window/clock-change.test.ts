/** Clock changes are all found, and to the millisecond. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clockChanges } from '../../../src/model/window/clock-change.ts'
import { offsetMs } from '../../../src/model/window/zone.ts'

const HOUR = 3_600_000

function changes(zone: string, from: string, to: string): string[] {
  return Array.from(clockChanges(zone, Date.parse(from), Date.parse(to)), ({ at, before, after }) => `${new Date(at).toISOString()} ${before / HOUR} ${after / HOUR}`)
}

test('the changes of a year are named with the offsets before and after', () => {
  assert.deepEqual(changes('America/New_York', '2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z'), ['2026-03-08T07:00:00.000Z -5 -4', '2026-11-01T06:00:00.000Z -4 -5'])
  assert.deepEqual(changes('Asia/Shanghai', '2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z'), [])
})

test('a change at the end of the span counts, one at its beginning does not', () => {
  assert.deepEqual(changes('America/New_York', '2026-03-08T06:00:00Z', '2026-03-08T07:00:00Z').length, 1)
  assert.deepEqual(changes('America/New_York', '2026-03-08T07:00:00Z', '2026-03-08T09:00:00Z').length, 0)
})

test('two changes a week apart, back to the same offset, are both found (Recife 2000)', () => {
  assert.deepEqual(changes('America/Recife', '2000-10-07T12:00:00Z', '2000-11-01T00:00:00Z'), ['2000-10-08T03:00:00.000Z -3 -2', '2000-10-15T02:00:00.000Z -2 -3'])
})

test('offsets are whole milliseconds, also those of local mean time', () => {
  assert.equal(offsetMs('Africa/Blantyre', Date.UTC(1908, 0, 1)), 7_818_000)
})

test('UTC needs no Intl, which costs a short process 15 ms', (context) => {
  context.mock.method(Intl, 'DateTimeFormat', () => assert.fail('Intl was asked'))
  assert.equal(offsetMs('UTC', 0), 0)
})

const EVENTFUL: readonly (readonly [string, number, number])[] = [
  ['Africa/Casablanca', 2024, 2027], ['Africa/Tunis', 1943, 1943], ['America/Recife', 2000, 2001], ['Asia/Gaza', 2040, 2041],
  ['Europe/Riga', 1944, 1945], ['Europe/Simferopol', 1944, 1945], ['Pacific/Apia', 2010, 2012],
]
for (const [zone, first, last] of EVENTFUL) {
  test(`${zone}, ${first} to ${last}: an hourly look finds no change that was missed`, () => {
    const seen: number[] = []
    let before = offsetMs(zone, Date.UTC(first, 0, 1))
    for (let at = Date.UTC(first, 0, 1); at < Date.UTC(last + 1, 0, 1); at += HOUR) {
      const offset = offsetMs(zone, at)
      if (offset !== before) seen.push(at)
      before = offset
    }
    const found = Array.from(clockChanges(zone, Date.UTC(first, 0, 1), Date.UTC(last + 1, 0, 1) - HOUR), ({ at }) => at)
    assert.ok(found.length > 0)
    assert.deepEqual(found.map((at) => Math.ceil(at / HOUR) * HOUR), seen)
  })
}

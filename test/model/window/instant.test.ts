/** Instants are taken exactly as written, or not at all. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseInstant } from '../../../src/model/window/instant.ts'
import { assertRefused } from './refusal.ts'

const ACCEPTED: readonly (readonly [string, string])[] = [
  ['2026-09-20T10:00Z', '2026-09-20T10:00:00.000Z'],
  ['2026-09-20 10:00:59z', '2026-09-20T10:00:59.000Z'],
  ['2026-09-20T18:00:30.25+08:00', '2026-09-20T10:00:30.250Z'],
  ['2026-09-20T18:00:30.1239999+0800', '2026-09-20T10:00:30.123Z'],
  ['2026-01-01T00:30:00-05:45', '2026-01-01T06:15:00.000Z'],
  ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
  ['0099-02-03T04:05:06Z', '0099-02-03T04:05:06.000Z'],
]
for (const [text, iso] of ACCEPTED) {
  test(`${text} is ${iso}`, () => assert.equal(parseInstant('at', text).toISOString(), iso))
}

for (const text of ['2026-09-20T10:00', '2026-09-20 10:00:00.5']) {
  test(`${text} is refused: a local time names no instant`, () => assertRefused(() => parseInstant('at', text), 'at', /local time.*add Z/))
}
for (const text of ['', 'now', '2026-09-20', '20260920T100000Z', '2026-09-20T10Z', '1768989600', '2026-09-20T10:00:00 +08:00', '2026-09-20T10:00Z\n']) {
  test(`${JSON.stringify(text)} is refused, showing how an instant is written`, () => assertRefused(() => parseInstant('from', text), 'from', /must be an instant such as/))
}
for (const text of ['2026-02-30T00:00Z', '2026-13-01T00:00Z', '2026-00-01T00:00Z', '2026-01-00T00:00Z', '2026-01-01T24:00Z', '2026-01-01T00:60Z', '2026-01-01T23:59:60Z', '2026-01-01T00:00+08:60', '2026-01-01T00:00+24:00', '0000-01-01T00:00Z', '9999-12-31T23:59-01:00']) {
  test(`${text} is refused: there is no such time`, () => assertRefused(() => parseInstant('to', text), 'to', /no such date and time/))
}

/** Labels: readable, sortable, and never one label for two windows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labelOf } from '../../../src/model/window/label.ts'

function label(zone: string, at: string, seconds = false): string {
  return labelOf(zone, Date.parse(at), seconds)
}

test('a label is the wall clock of the zone', () => {
  assert.equal(label('Asia/Shanghai', '2026-09-20T10:00:00Z'), '2026-09-20-18:00')
  assert.equal(label('Asia/Shanghai', '2026-09-20T10:00:07Z', true), '2026-09-20-18:00:07')
  assert.equal(label('Asia/Tehran', '2026-03-21T12:00:00Z'), '2026-03-21-15:30', 'Gregorian, ASCII')
})

test('the offset is appended exactly where a time is shown twice', () => {
  assert.equal(label('America/New_York', '2026-11-01T04:59:00Z'), '2026-11-01-00:59')
  assert.equal(label('America/New_York', '2026-11-01T05:00:00Z'), '2026-11-01-01:00-04:00')
  assert.equal(label('America/New_York', '2026-11-01T05:59:00Z'), '2026-11-01-01:59-04:00')
  assert.equal(label('America/New_York', '2026-11-01T06:00:00Z'), '2026-11-01-01:00-05:00')
  assert.equal(label('America/New_York', '2026-11-01T06:59:59Z', true), '2026-11-01-01:59:59-05:00')
  assert.equal(label('America/New_York', '2026-11-01T07:00:00Z'), '2026-11-01-02:00')
})

test('a gap has no times shown twice', () => {
  assert.equal(label('America/New_York', '2026-03-08T06:59:00Z'), '2026-03-08-01:59')
  assert.equal(label('America/New_York', '2026-03-08T07:00:00Z'), '2026-03-08-03:00')
})

test('folds of half an hour, two hours and a whole day are told apart', () => {
  assert.equal(label('Australia/Lord_Howe', '2026-04-04T15:15:00Z'), '2026-04-05-01:45+10:30')
  assert.equal(label('Australia/Lord_Howe', '2026-04-04T14:29:00Z'), '2026-04-05-01:29')
  assert.equal(label('Antarctica/Troll', '2026-10-24T23:00:00Z'), '2026-10-25-01:00+02:00')
  assert.equal(label('Antarctica/Troll', '2026-10-25T01:00:00Z'), '2026-10-25-01:00+00:00')
  assert.equal(label('Pacific/Kwajalein', '1969-09-30T01:00:00Z'), '1969-09-30-12:00+11:00')
  assert.equal(label('Pacific/Kwajalein', '1969-10-01T00:00:00Z'), '1969-09-30-12:00-12:00')
})

test('offsets of local mean time keep their seconds', () => {
  assert.equal(label('America/New_York', '1883-11-18T16:58:00Z'), '1883-11-18-12:01-04:56:02')
})

test('minutes that a fold of some seconds lays upon each other get different labels', () => {
  // New York, 18 November 1883: at 17:00:00Z the clocks went back by 3 min 58 s, from 12:03:58 to 12:00.
  const minutes = Array.from({ length: 12 }, (_, index) => labelOf('America/New_York', Date.UTC(1883, 10, 18, 16, 54 + index), false))
  assert.equal(new Set(minutes).size, minutes.length, minutes.join(' '))
})

/** A schedule comes back from its text as it was, and the way back through its windows is the way there. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { inBatches, windowsBack } from '../../src/model/expected.ts'
import { stateOf, usualLimitMs, type WindowRun } from '../../src/model/missing.ts'
import { scheduleOf, scheduleText } from '../../src/model/task.ts'
import { cron, every } from '../../src/model/window/schedule.ts'
import { windowsBetween } from '../../src/model/window/window.ts'

const EXPRESSIONS = ['* * * * *', '0 18 * * *', ' 0   18 * *  1-5 ', '@daily', '0 */5 * * * *', '*/15 9-17 1,15 * 1', '30 2 * * *']
const PERIODS = ['30s', '15m', '1.5h', '36h', '1d', '1w', '1mo', '3mo', '1y']

describe('schedule text', () => {
  for (const [make, texts] of [[cron, EXPRESSIONS], [every, PERIODS]] as const) {
    for (const text of texts) {
      it(`${make.name} ${JSON.stringify(text)} comes back`, () => {
        const schedule = make(text, 'America/New_York')
        const back = scheduleOf(scheduleText(schedule)!)!
        const labels = (of: typeof back) => [...windowsBetween(of, new Date('2026-03-01T00:00:00Z'), new Date('2026-03-01T12:00:00Z'))].map(({ label }) => label)
        assert.deepEqual([back.kind, back.zone, labels(back)], [schedule.kind, 'America/New_York', labels(schedule)])
      })
    }
  }

  it('white space does not make another schedule; one that no column holds is not kept', () => {
    assert.deepEqual(scheduleText(cron(' 0  18\t* * * ')), scheduleText(cron('0 18 * * *')))
    assert.equal(scheduleText(cron(`${'0,'.repeat(100)}1 * * * *`)), null)
    assert.equal(scheduleOf({ schedule: null, zone: null }), null)
  })
})

describe('windows back', () => {
  const clocks = fc.record({
    zone: fc.constantFrom('UTC', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu'),
    text: fc.constantFrom('*/30 * * * *', '30 2 * * *', '15 1-3 * * *', '0 0 * * 0'),
    from: fc.date({ min: new Date('2026-03-01T00:00:00Z'), max: new Date('2026-11-30T00:00:00Z'), noInvalidDate: true }),
    hours: fc.integer({ min: 1, max: 24 * 9 }),
  })

  it('are the windows between, the latest first, over clock changes too', () => {
    fc.assert(
      fc.property(clocks, ({ zone, text, from, hours }) => {
        const [schedule, to] = [cron(text, zone), new Date(from.getTime() + hours * 3_600_000)]
        const there = [...windowsBetween(schedule, from, to)].map(({ label }) => label)
        assert.deepEqual([...windowsBack(schedule, to, from)].map(({ label }) => label), there.toReversed())
      }),
      { numRuns: 200 },
    )
  })

  it('come in batches, none empty, nothing left out', () => {
    const windows = [...windowsBetween(every('1h'), new Date('2026-09-20T00:00:00Z'), new Date('2026-09-20T05:00:00Z'))]
    assert.deepEqual([...inBatches(windows, 2)].map((batch) => batch.length), [2, 2, 1])
    assert.deepEqual([[...inBatches(windows.slice(0, 4), 2)].map((batch) => batch.length), [...inBatches([], 2)]], [[2, 2], []])
  })
})

describe('what became of a window', () => {
  const start = new Date('2026-09-20T10:00:00Z')
  const at = (seconds: number) => new Date(start.getTime() + seconds * 1000)
  const run = (more: Partial<WindowRun>): WindowRun => ({ taskKey: 't:1', status: 'completed', attempt: 1, host: null, pid: null, startedAt: at(1), finishedAt: null, availableAt: start, failureReason: null, exitCode: null, leaseOver: false, due: false, ...more })
  const state = (of: WindowRun | null, seconds = 1000, tooLongMs: number | null = null) => stateOf({ start }, of, { now: at(seconds), graceMs: 60_000, tooLongMs })

  it('without a run it is missing from the end of its grace on', () => assert.deepEqual([state(null, 59.999), state(null, 60)], [null, 'missing']))
  it('begun at the end of its grace it is in time, and late after it', () => assert.deepEqual([state(run({ startedAt: at(60) })), state(run({ startedAt: at(60.001) }))], [null, 'late']))
  it('a run without an attempt of its own, completed by hand, is not late', () => assert.equal(state(run({ startedAt: null })), null))
  it('an owner that is gone makes it lost, however long it ran', () => assert.equal(state(run({ status: 'processing', leaseOver: true }), 1000, 1), 'lost'))
  it('a run at its limit is not over it', () => assert.deepEqual([state(run({ status: 'processing' }), 11, 10_000), state(run({ status: 'processing' }), 11.001, 10_000)], ['running', 'running_too_long']))
  it('the usual limit is twice the longest, at least a minute, of three runs or more', () => assert.deepEqual([usualLimitMs([1, 2]), usualLimitMs([1, 2, 3]), usualLimitMs([1, 2, 40_000])], [null, 60_000, 80_000]))
})

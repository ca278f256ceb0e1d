/** What is written is what a reader of the format reads, whatever stands in the labels. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { exposition, type Family } from '../../../src/cli/metrics/exposition.ts'
import { familiesOf } from '../../../src/cli/metrics/families.ts'
import { boundTasks, type Measures, type TaskNow } from '../../../src/model/measures.ts'
import { parseExposition } from '../../support/exposition.ts'

const quiet = { pending: 0, processing: 0, expiredLeases: 0, oldestPendingAt: null, effectsInDoubt: 0, lastSuccessAt: null, lastFailureAt: null, nextDueAt: null }

describe('exposition', () => {
  it('any label value comes back as it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.double().map((value) => (value === 0 ? 0 : value)), (text, value) => {
        const family: Family = { name: 'a_total', type: 'counter', help: 'Of \\ and\nlines.', samples: [{ labels: { task: text, reason: '' }, value }] }
        const read = parseExposition(exposition([family]))
        assert.deepEqual(read, [{ name: 'a_total', type: 'counter', help: 'Of \\ and\nlines.', samples: [{ name: 'a_total', labels: { task: text, reason: '' }, value }] }])
      }),
    )
  })

  it('a quote, a backslash and a line break are escaped as the format says', () => {
    assert.equal(exposition([{ name: 'a', type: 'gauge', help: 'A.', samples: [{ labels: { task: 'x"y\\z\nw' }, value: 1 }] }]), '# HELP a A.\n# TYPE a gauge\na{task="x\\"y\\\\z\\nw"} 1\n')
  })

  it('a family without samples is not mentioned', () => {
    assert.equal(exposition([{ name: 'a', type: 'gauge', help: 'A.', samples: [] }]), '')
  })

  it('tasks beyond the bound are one, their counts added, the worst of their instants kept', () => {
    const now: TaskNow[] = Array.from({ length: 1003 }, (_, n) => ({ ...quiet, task: `t${String(n).padStart(4, '0')}`, pending: n, oldestPendingAt: new Date(10_000 - n), lastSuccessAt: new Date(n) }))
    const runs = now.map(({ task }) => ({ task, ends: 'run', outcome: 'completed', reason: '', endings: 2, seconds: 3 }) as const)
    const measures: Measures = { now, runs, attempts: [] }

    const bounded = boundTasks(measures, 1000, '(other)')

    assert.deepEqual([bounded.now.length, bounded.runs.length], [1001, 1001])
    assert.deepEqual(bounded.now.at(-1), { ...quiet, task: '(other)', pending: 1000 + 1001 + 1002, oldestPendingAt: new Date(10_000 - 1002), lastSuccessAt: new Date(1002) })
    assert.deepEqual(bounded.runs.at(-1), { task: '(other)', ends: 'run', outcome: 'completed', reason: '', endings: 6, seconds: 9 })
    assert.equal(boundTasks(measures, 1003, '(other)').now, now)
    const samples = parseExposition(exposition(familiesOf(bounded))).flatMap((family) => family.samples.map(({ name, labels }) => JSON.stringify([name, labels])))
    assert.equal(new Set(samples).size, samples.length, 'no series is there twice')
  })
})

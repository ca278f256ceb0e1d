/** The table of moves agrees with the picture of the design, and with the text of the schema. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { CONFLICT_REASONS } from '../../src/model/outcome.ts'
import { ATTEMPT_OUTCOMES, FAILURE_REASONS, MOVES, STATUSES } from '../../src/model/states.ts'

const schema = readFileSync(join(import.meta.dirname, '../../migrations/0001-ledger.ts'), 'utf8')

/** The words that a CHECK of the schema lists. */
function listed(constraint: string): string[] {
  const list = new RegExp(`constraint \\S*${constraint}\\S* check \\(\\w+ in \\(([^)]*)\\)\\)`).exec(schema)?.[1]
  assert.ok(list, `${constraint} is there`)
  return list.split(', ').map((word) => word.replace(/^'(.*)'$/, '$1'))
}

const OPERATORS = ['cancel', 'reopen', 'redo']

describe('states', () => {
  it('the schema lists the states, the reasons and the outcomes that the code has, and no others', () => {
    assert.deepEqual([listed('task_runs_status'), listed('task_runs_reasons'), listed('task_attempts_outcome')], [[...STATUSES], [...FAILURE_REASONS], [...ATTEMPT_OUTCOMES]])
  })

  it('every word fits its column', () => {
    for (const word of [...STATUSES, ...FAILURE_REASONS, ...ATTEMPT_OUTCOMES]) assert.ok(word.length <= 10, word)
    for (const word of CONFLICT_REASONS) assert.ok(word.length <= 12, word)
  })

  it('every state can be reached, and is left: one that is over only by an operator', () => {
    const moves = Object.values(MOVES)
    const left = new Set<string>(moves.map(({ from }) => from))
    const byThemselves = Object.entries(MOVES).filter(([name]) => !OPERATORS.includes(name)).map(([, { from }]) => from as string)
    assert.deepEqual([STATUSES.filter((status) => !byThemselves.includes(status)), STATUSES.filter((status) => !left.has(status))], [['completed', 'failed'], []])
    assert.deepEqual(STATUSES.filter((status) => !moves.some(({ to }) => to === status)), [])
  })

  it('every attempt that ends without completing its run leaves a line, and so does one whose run is done again', () => {
    for (const [name, { from, to, history }] of Object.entries(MOVES)) assert.equal(history !== null, name === 'redo' || (from === 'processing' && to !== 'completed'), name)
  })
})

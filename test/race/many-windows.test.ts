/** Sixteen processes run after the same hundred windows: each window is executed once. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { bundled } from '../support/bundled.ts'
import { ledgerOn, newFolder } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'
import type { Answer } from './fixture-racer.ts'
import { Fleet } from './fleet.ts'

const PROCESSES = 16
const WINDOWS = Number(process.env['RUNLEDGER_RACE_WINDOWS'] ?? 100)
const START_MS = 100

let fleet: Fleet
const programs = bundled(import.meta.dirname, 'fixture-racer.ts')
const folder = newFolder()
before(async () => {
  fleet = await Fleet.start(PROCESSES, programs)
})
after(() => fleet.end())

eachDatabase('many windows', (db) => {
  const ledger = ledgerOn(db)
  before(() => fleet.together({ do: 'open', url: ledger.url }))
  after(() => fleet.together({ do: 'close' }))

  it(`case 90: ${PROCESSES} claimers of ${WINDOWS} windows: one execution each, and a recorded conflict for every other claim`, async () => {
    const file = join(folder, db.name)
    const answers = (await fleet.together({ do: 'all', task: 'windows', windows: WINDOWS, at: Date.now() + START_MS, file })) as Exclude<Answer, { problem: string }>[]
    const executed = readFileSync(file, 'utf8').trimEnd().split('\n').map(Number)
    assert.deepEqual(executed.toSorted((a, b) => a - b), Array.from({ length: WINDOWS }, (_, index) => index + 1))
    assert.equal(answers.reduce((sum, { wins }) => sum + wins, 0), WINDOWS)
    assert.deepEqual(await ledger.sql(`select status, attempt, count(*) as runs, count(distinct fence) as fences from task_runs group by status, attempt`), [{ status: 'completed', attempt: 1, runs: WINDOWS, fences: WINDOWS }])
    const conflicts = await ledger.sql(`select reason, count(*) as times from task_attempts where outcome = 'conflict' and held_by_instance is not null group by reason order by reason`)
    assert.ok(conflicts.every(({ reason }) => reason === 'held' || reason === 'done'), JSON.stringify(conflicts))
    assert.equal(conflicts.reduce((sum, { times }) => sum + Number(times), 0), (PROCESSES - 1) * WINDOWS)
  })
})

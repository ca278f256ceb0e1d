/** Sixty-four processes want one run at one instant: one has it, and the others know who. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { bundled } from '../support/bundled.ts'
import { ledgerOn } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'
import type { Answer } from './fixture-racer.ts'
import { Fleet } from './fleet.ts'

const PROCESSES = 64
const ROUNDS = Number(process.env['RUNLEDGER_RACE_ROUNDS'] ?? 3)
/** Until then everybody has heard. */
const START_MS = 250

let fleet: Fleet
const programs = bundled(import.meta.dirname, 'fixture-racer.ts')
before(async () => {
  fleet = await Fleet.start(PROCESSES, programs)
})
after(() => fleet.end())

eachDatabase('one key', (db) => {
  const ledger = ledgerOn(db)
  before(() => fleet.together({ do: 'open', url: ledger.url }))
  after(() => fleet.together({ do: 'close' }))

  it(`case 38: of ${PROCESSES} processes exactly one claims; every other is a conflict, recorded with the holder, in each of ${ROUNDS} rounds`, async () => {
    for (let round = 1; round <= ROUNDS; round++) {
      const answers = (await fleet.together({ do: 'claim', task: 'race', key: String(round), at: Date.now() + START_MS })) as Exclude<Answer, { problem: string }>[]
      const winners = answers.filter(({ claimed }) => claimed)
      assert.equal(winners.length, 1, `round ${round}`)
      const [{ instance, pid }] = winners as [(typeof winners)[0]]
      const losers = answers.filter(({ claimed }) => !claimed)
      assert.deepEqual(losers.map(({ conflict }) => [conflict?.reason, conflict?.holder?.instanceId, conflict?.holder?.pid]), losers.map(() => ['held', instance, pid]))
      const recorded = await ledger.sql(`select instance_id, outcome, reason, held_by_key, held_by_instance, held_by_pid from task_attempts where task_key = 'race:${round}' order by instance_id`)
      assert.deepEqual(recorded, losers.map((loser) => ({ instance_id: loser.instance, outcome: 'conflict', reason: 'held', held_by_key: `race:${round}`, held_by_instance: instance, held_by_pid: pid })).toSorted((a, b) => (a.instance_id < b.instance_id ? -1 : 1)))
      await fleet.together({ do: 'complete' })
    }
    assert.deepEqual(await ledger.sql(`select status, attempt, count(*) as runs from task_runs group by status, attempt`), [{ status: 'completed', attempt: 1, runs: ROUNDS }])
    const fences = (await ledger.sql(`select fence from task_runs order by started_at, fence`)).map(({ fence }) => Number(fence))
    assert.ok(fences.every((fence, index) => index === 0 || fence > fences[index - 1]!), 'fences grow')
  })
})

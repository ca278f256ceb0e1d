/**
 * The short form of scripts/prove: the mix of faults on each database with a random seed, and each fault by itself with a
 * fixed one, on one database after the other; with RUNLEDGER_PROOF=all on each of them.
 */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { FAULTS } from '../../scripts/proof/faults.ts'
import { Stage, type Size } from '../../scripts/proof/stage.ts'
import { newFolder } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

const SIZE: Size = { keys: 5, queued: 36, faults: 3, workers: 2, withinMs: 120_000, leaseMs: 600 }
const SEED = 20
/** The mutants show that `kill`, `death` and `freeze` are seen; `mix` has all three. */
const CHOSEN = ['mix', 'boundary', 'network', 'statement', 'restart', 'readonly', 'disk', 'clock', 'pool', 'block']

const folder = newFolder()

eachDatabase('proof', (db) => {
  const random = Math.floor(Math.random() * 1_000_000)
  for (const [nth, name] of CHOSEN.entries()) {
    const fault = FAULTS[name]!
    const its = process.env['RUNLEDGER_PROOF'] === 'all' || name === 'mix' ? fault.on : [fault.on[nth % fault.on.length]!]
    if (!its.includes(db.name)) continue
    const seed = name === 'mix' ? random : SEED
    it(`every promise is kept, whatever happens: ${fault.about} (seed ${seed})`, async (t) => {
      const stage = new Stage(db, `${folder}/${db.name}-${name}`, seed, SIZE)
      t.after(() => stage.close())
      const { verdicts, figures, faults } = await fault.play(stage)
      assert.deepEqual(verdicts.flatMap(({ promise, broken }) => broken.map((text) => `${promise}: ${text}`)), [])
      assert.equal(figures.runs, 2 * SIZE.keys + SIZE.queued)
      assert.ok(faults > 0 || name === 'block' || name === 'pool' || name === 'statement', 'there was no fault')
    })
  }
})

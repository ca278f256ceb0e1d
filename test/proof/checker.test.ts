/** The checker misses each guard of the ledger that is taken out, and is content with the ledger as it is. */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { bundleProgram } from '../../scripts/proof/programs.ts'
import { migrate } from '../../src/index.ts'
import { playRound, type RoundResult } from '../../src/proof/round.ts'
import type { WorkerSpec } from '../../src/proof/worker-spec.ts'
import { newFolder } from '../support/cli.ts'
import { FAILING_STATEMENT, LEASE_MS, MUTANTS } from './mutants.ts'

/** Chance decides when a killed process had what in hand: some get a second go, with another seed. */
const ROUNDS = 3
const WITHIN_MS = 40_000
const KEYS = 8
const WORKER = 'src/proof/worker-process.ts'

describe('checker', { concurrency: 3 }, () => {
  const folder = newFolder()

  it('is content with the ledger as it is, also when a statement in the middle of a transaction fails', async () => {
    const worker = await bundleProgram(join(folder, 'sound'), WORKER, FAILING_STATEMENT)
    const { verdicts, figures } = await play(worker, 'sound', 1, { deathChance: 0.2, blockMs: 2 * LEASE_MS })
    assert.deepEqual(verdicts.flatMap(({ broken }) => broken), [])
    assert.ok(figures.runs === 2 * KEYS && figures.starts > figures.runs)
  })

  for (const [number, mutant] of MUTANTS.entries()) {
    it(`misses ${mutant.without}: ${mutant.breaks.join(' or ')}`, async () => {
      const worker = await bundleProgram(join(folder, String(number)), WORKER, mutant.edits)
      const complaints: string[] = []
      for (let round = 1; round <= ROUNDS && complaints.length === 0; round++) {
        const begun = performance.now()
        const { verdicts } = await play(worker, `m${number}`, round, mutant.worker, mutant.withinMs)
        complaints.push(...verdicts.filter(({ promise }) => mutant.breaks.includes(promise)).flatMap(({ broken }) => broken))
        assert.ok(performance.now() - begun < 60_000, 'it was noticed too late')
      }
      assert.ok(complaints.length > 0, 'nothing was noticed')
    })
  }

  async function play(program: string, name: string, seed: number, worker: Partial<WorkerSpec> = {}, withinMs = WITHIN_MS): Promise<RoundResult> {
    const place = join(folder, `${name}-${seed}`)
    mkdirSync(place)
    const url = `sqlite:${join(place, 'ledger.db')}`
    await migrate(url)
    return playRound({
      name, url, folder: place, seed, keys: KEYS, workers: 3, reapers: 1, withinMs,
      command: [process.execPath, program],
      worker: { leaseMs: LEASE_MS, jobMs: 80, maxAttempts: 6, ...worker },
    })
  }
})

/** The checker misses each guard of the ledger that is taken out, and is content with the ledger as it is. */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { bundleProgram } from '../../scripts/proof/programs.ts'
import { migrate } from '../../src/index.ts'
import { playRound, type Round, type RoundResult } from '../../src/proof/round.ts'
import { newFolder } from '../support/cli.ts'
import { onlyOn } from '../support/only-on.ts'
import { FAILING_STATEMENT, LEASE_MS, MUTANTS, type Mutant } from './mutants.ts'
import { QUEUE_MUTANTS, ROW_LOCK_MUTANT } from './queue-mutants.ts'

/** Chance decides when a killed process had what in hand: some get a second go, with another seed. */
const ROUNDS = 3
const WITHIN_MS = 40_000
const LAUNCHES = { keys: 8, queued: 0, workers: 3 } as const
const QUEUE = { keys: 0, queued: 60, workers: 2 } as const
const WORKER = 'src/proof/worker-process.ts'

type Size = Pick<Round, 'keys' | 'queued' | 'workers'>

const folder = newFolder()

describe('checker', { concurrency: 3 }, () => {
  it('is content with the ledger as it is, also when a statement in the middle of a transaction fails', async () => {
    const { verdicts, figures } = await play('sound', { edits: FAILING_STATEMENT, worker: { deathChance: 0.2, blockMs: 2 * LEASE_MS } }, { ...LAUNCHES, queued: 30, workers: 2 }, 1)
    assert.deepEqual(verdicts.flatMap(({ broken }) => broken), [])
    assert.ok(figures.runs === 2 * LAUNCHES.keys + 30 && figures.starts > figures.runs)
  })

  for (const mutant of MUTANTS) it(`misses ${mutant.without}: ${mutant.breaks.join(' or ')}`, () => mustComplain(mutant, LAUNCHES))
  for (const mutant of QUEUE_MUTANTS) it(`misses ${mutant.without}: ${mutant.breaks.join(' or ')}`, () => mustComplain(mutant, QUEUE))
})

onlyOn('mariadb', 'checker of row locks', (db) => {
  it(`misses ${ROW_LOCK_MUTANT.without}: ${ROW_LOCK_MUTANT.breaks.join(' or ')}`, async () => mustComplain(ROW_LOCK_MUTANT, QUEUE, await db.url()))
})

async function mustComplain(mutant: Mutant, size: Size, url?: string): Promise<void> {
  const complaints: string[] = []
  for (let round = 1; round <= ROUNDS && complaints.length === 0; round++) {
    const begun = performance.now()
    const { verdicts } = await play(mutant.without, mutant, size, round, url)
    complaints.push(...verdicts.filter(({ promise }) => mutant.breaks.includes(promise)).flatMap(({ broken }) => broken))
    assert.ok(performance.now() - begun < 60_000, 'it was noticed too late')
  }
  assert.ok(complaints.length > 0, 'nothing was noticed')
}

const programs = new Map<string, Promise<string>>()

async function play(name: string, { edits, worker, withinMs = WITHIN_MS }: Pick<Mutant, 'edits' | 'worker' | 'withinMs'>, size: Size, seed: number, url?: string): Promise<RoundResult> {
  const place = join(folder, `${name}-${seed}`)
  mkdirSync(place)
  const program = programs.get(name) ?? bundleProgram(join(folder, name), WORKER, edits)
  programs.set(name, program)
  const ledger = url ?? `sqlite:${join(place, 'ledger.db')}`
  await migrate(ledger)
  return playRound({ name: `m${seed}`, url: ledger, folder: place, seed, ...size, reapers: 1, withinMs, command: [process.execPath, await program], worker: { leaseMs: LEASE_MS, jobMs: 80, maxAttempts: 6, ...worker } })
}

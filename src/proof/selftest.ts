/** Races, crashes and silences against a ledger for a while: the promises with a verdict each, and the figures. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { together as merged } from './check.ts'
import type { CrewOptions } from './crew.ts'
import { summed, type Figures } from './figures.ts'
import type { Verdict } from './promises.ts'
import { playRound, type Round } from './round.ts'
import { freezes, kills, together } from './trouble.ts'

export interface SelfTestOptions extends Pick<CrewOptions, 'url' | 'command'> {
  readonly seconds: number
  readonly seed: number
  readonly signal?: AbortSignal
  readonly onRound?: (round: { readonly trouble: string; readonly runs: number; readonly faults: number; readonly broken: number }) => void
}

export interface SelfTest {
  readonly verdicts: readonly Verdict[]
  readonly figures: Figures
  readonly faults: number
}

const LEASE_MS = 1_000

const TROUBLES: Readonly<Record<string, Pick<Round, 'trouble' | 'worker'>>> = {
  race: {},
  crash: { trouble: kills(8, 100), worker: { deathChance: 0.1 } },
  freeze: { trouble: freezes(3, 1.5 * LEASE_MS) },
  all: { trouble: together(kills(4, 100), freezes(2, 1.5 * LEASE_MS)), worker: { deathChance: 0.05 } },
}

export async function selfTest({ url, command, seconds, seed, signal, onRound }: SelfTestOptions): Promise<SelfTest> {
  const folder = mkdtempSync(join(tmpdir(), 'runledger-selftest-'))
  const until = performance.now() + seconds * 1000
  const verdicts: Verdict[] = []
  const figures: Figures[] = []
  let faults = 0
  try {
    for (let round = 0; round === 0 || performance.now() < until; round++) {
      const [trouble, play] = Object.entries(TROUBLES)[round % Object.keys(TROUBLES).length]!
      const result = await playRound({
        name: `selftest-${round + 1}`, folder, url, command, seed: seed + round, keys: 20, queued: 300, workers: 2, reapers: 1, withinMs: 120_000,
        ...play, worker: { leaseMs: LEASE_MS, ...play.worker }, ...(signal && { signal }),
      })
      verdicts.push(...result.verdicts)
      figures.push(result.figures)
      faults += result.faults
      onRound?.({ trouble, runs: result.figures.runs, faults: result.faults, broken: result.verdicts.reduce((sum, { broken }) => sum + broken.length, 0) })
    }
    return { verdicts: merged(verdicts), figures: summed(figures), faults }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** One round of a proof: processes run after the same keys while trouble is made, then the evidence is judged. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openLedger } from '../index.ts'
import { check } from './check.ts'
import { Crew, type CrewOptions } from './crew.ts'
import { gatherEvidence, type Evidence } from './evidence.ts'
import { figuresOf, type Figures } from './figures.ts'
import type { Verdict } from './promises.ts'
import { seeded, type Random } from './random.ts'
import type { ProofTask, WorkerSpec } from './worker-spec.ts'

export interface Round extends Pick<CrewOptions, 'url' | 'command' | 'environment'> {
  /** Names its tasks and its folder. */
  readonly name: string
  /** A folder for the histories of all rounds. */
  readonly folder: string
  readonly seed: number
  /** Keys of each of its tasks. */
  readonly keys: number
  readonly workers: number
  readonly reapers: number
  readonly worker?: Partial<WorkerSpec>
  /** Makes trouble until it is done with it or the workers are. */
  readonly trouble?: (crew: Crew, random: Random) => Promise<number>
  /** Workers that take longer did not recover. */
  readonly withinMs: number
  /** Where the evidence is read, if not at `url` (which may lead through a proxy). */
  readonly tables?: string
  /** Ends all of it at once; then there is no result. */
  readonly signal?: AbortSignal
}

export interface RoundResult {
  readonly verdicts: readonly Verdict[]
  readonly figures: Figures
  readonly faults: number
  readonly evidence: Evidence
}

export const TERMS: Omit<WorkerSpec, 'name' | 'folder' | 'seed' | 'parent' | 'role' | 'tasks'> = {
  leaseMs: 1000, jobMs: 60, maxAttempts: 12, elsewhere: false, heartbeats: 'loop', lanes: 2, blockMs: 0, blockChance: 0.1, deathChance: 0, holdMs: 0, patienceMs: 10_000,
}

export async function playRound(round: Round): Promise<RoundResult> {
  const folder = join(round.folder, round.name)
  mkdirSync(folder, { recursive: true })
  const random = seeded(round.seed)
  const tasks: ProofTask[] = [{ name: `${round.name}-alone`, exclusive: true, keys: round.keys }, { name: `${round.name}-many`, exclusive: false, keys: round.keys }]
  const ledger = await openLedger(round.tables ?? round.url, { heartbeats: 'loop', connectTimeout: '30s' })
  const holders = () => ledger.runs({ status: 'processing' }).then((runs) => runs.map(({ pid }) => pid))
  const crew = new Crew({ ...round, folder, random, holders })
  round.signal?.addEventListener('abort', () => void crew.end())
  const terms = { ...TERMS, tasks, ...round.worker }
  try {
    for (let n = 0; n < round.reapers; n++) crew.start({ ...terms, role: 'reaper' })
    // Every second one as if it lived on another host: its death cannot be proven, its lease decides.
    for (let n = 0; n < round.workers; n++) crew.start({ ...terms, elsewhere: n % 2 === 1, ...round.worker, role: 'worker' })
    const faults = (await round.trouble?.(crew, random)) ?? 0
    const finished = await crew.finish(round.withinMs)
    round.signal?.throwIfAborted()
    const evidence = await gatherEvidence(ledger, folder, tasks, finished)
    return { verdicts: check(evidence), figures: figuresOf(evidence), faults, evidence }
  } finally {
    await crew.end()
    await ledger.close()
  }
}

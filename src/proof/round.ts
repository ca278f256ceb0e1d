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
import type { ProofTask, QueuedTask, WorkerSpec } from './worker-spec.ts'

export interface Round extends Pick<CrewOptions, 'url' | 'command' | 'environment'> {
  /** Names its tasks and its folder. */
  readonly name: string
  /** A folder for the histories of all rounds. */
  readonly folder: string
  readonly seed: number
  /** Keys of each of its tasks; 0 for no launches. */
  readonly keys: number
  /** Runs that are enqueued; 0 for none. */
  readonly queued: number
  /** Of those that launch, and as many of the queue. */
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

export const TERMS: Omit<WorkerSpec, 'name' | 'folder' | 'seed' | 'parent' | 'role' | 'tasks' | 'queued' | 'share'> = {
  leaseMs: 1000, jobMs: 60, maxAttempts: 12, elsewhere: false, heartbeats: 'loop', lanes: 2, blockMs: 0, blockChance: 0.1, deathChance: 0, holdMs: 0, holdChance: 0.3, patienceMs: 10_000,
}

export async function playRound(round: Round): Promise<RoundResult> {
  const folder = join(round.folder, round.name)
  mkdirSync(folder, { recursive: true })
  const random = seeded(round.seed)
  const tasks: ProofTask[] = [{ name: `${round.name}-alone`, exclusive: true, keys: round.keys }, { name: `${round.name}-many`, exclusive: false, keys: round.keys }]
  const queued = queuedTasks(round)
  const ledger = await openLedger(round.tables ?? round.url, { heartbeats: 'loop', connectTimeout: '30s' })
  const holders = () => ledger.runs({ status: 'processing' }).then((runs) => runs.map(({ pid }) => pid))
  const crew = new Crew({ ...round, folder, random, holders })
  round.signal?.addEventListener('abort', () => void crew.end())
  const terms = { ...TERMS, tasks, queued, share: null, ...round.worker }
  const rarer = rarerTrouble(terms, round.queued)
  try {
    for (let n = 0; n < round.reapers; n++) crew.start({ ...terms, role: 'reaper' })
    // Every second one as if it lived on another host: its death cannot be proven, its lease decides.
    for (let n = 0; n < round.workers && round.keys > 0; n++) crew.start({ ...terms, elsewhere: n % 2 === 1, ...round.worker, role: 'worker' })
    for (let n = 0; n < round.workers && queued.length > 0; n++) crew.start({ ...terms, elsewhere: n % 2 === 1, ...round.worker, ...rarer, role: 'worker', share: { nth: n, of: round.workers } })
    const faults = (await round.trouble?.(crew, random)) ?? 0
    const finished = await crew.finish(round.withinMs)
    round.signal?.throwIfAborted()
    const evidence = await gatherEvidence(ledger, folder, tasks, queued, finished)
    return { verdicts: check(evidence), figures: figuresOf(evidence), faults, evidence }
  } finally {
    await crew.end()
    await ledger.close()
  }
}

/** Runs of one concurrency key for each that may be processing: they go one after the other. */
const A_KEY = 10

/** A third without a concurrency key, a third that go one at a time, and a third that go three at a time. */
function queuedTasks({ name, queued }: Round): QueuedTask[] {
  if (queued === 0) return []
  const keys = Math.floor(queued / 3)
  return [
    { name: `${name}-free`, keys: queued - 2 * keys, concurrency: null },
    { name: `${name}-single`, keys, concurrency: { keys: Math.ceil(keys / A_KEY), limit: 1 } },
    { name: `${name}-triple`, keys, concurrency: { keys: Math.ceil(keys / (3 * A_KEY)), limit: 3 } },
  ]
}

/** Chances are those of a hundred jobs; of thousands, no more shall have trouble than of so many. */
const TROUBLED = 100

function rarerTrouble({ deathChance, blockChance, holdChance }: typeof TERMS, queued: number): Partial<WorkerSpec> {
  const part = Math.min(1, TROUBLED / queued)
  return { deathChance: deathChance * part, blockChance: blockChance * part, holdChance: holdChance * part }
}

/** All that a check may know: the histories of the processes, what the jobs told the witness, and the tables as the door shows them. */
import type { EffectRecord, HistoryLine, Ledger, Run } from '../index.ts'
import { readHistory, type Operation } from './read-history.ts'
import { tenuresOf, type Tenure } from './tenures.ts'
import type { ProofTask, QueuedTask } from './worker-spec.ts'

export interface Evidence {
  readonly operations: readonly Operation[]
  readonly tenures: readonly Tenure[]
  readonly runs: readonly Run[]
  /** The lines of each key, those of conflicts too. */
  readonly lines: ReadonlyMap<string, readonly HistoryLine[]>
  readonly effects: readonly EffectRecord[]
  /** What was enqueued, by the names of the tasks. */
  readonly queued: ReadonlyMap<string, QueuedTask>
  /** All processes that were not killed came to their end. */
  readonly finished: boolean
}

const ALL = 1_000_000
/** Keys that are read at the same time. */
const AT_ONCE = 8

export async function gatherEvidence(ledger: Ledger, folder: string, tasks: readonly ProofTask[], queued: readonly QueuedTask[], finished: boolean): Promise<Evidence> {
  const history = readHistory(folder)
  const runs: Run[] = []
  for (const { name } of [...tasks, ...queued]) runs.push(...(await ledger.runs({ task: name, limit: ALL })))
  const keys = [...new Set(runs.map(({ taskKey }) => taskKey))]
  const lines = new Map<string, HistoryLine[]>()
  const readSome = async () => {
    for (let key = keys.pop(); key !== undefined; key = keys.pop()) lines.set(key, (await ledger.show(key)).history)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, readSome))
  const names = new Set([...tasks, ...queued].map(({ name }) => name))
  const effects = (await ledger.effects.list({ limit: ALL })).filter(({ task }) => names.has(task))
  return { operations: history.operations, tenures: tenuresOf(history), runs, lines, effects, queued: new Map(queued.map((task) => [task.name, task])), finished }
}

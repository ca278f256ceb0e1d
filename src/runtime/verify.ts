/** Reads the whole ledger, beside everything that goes on, and tells which promise its rows contradict. */
import { checkEffect } from '../model/check-effect.ts'
import { checkLine, checkRun, type AttemptLine, type RunFacts } from '../model/check-run.ts'
import { FenceSet } from '../model/fence-set.ts'
import type { Finding } from '../model/finding.ts'
import { checkTaskName } from '../model/names.ts'
import { fenceScope } from '../store/fence.ts'
import { doubleActiveKeys, presentRuns, readAttemptLines, readBars, readCounters, readEffectFacts, readLines, readRunFact, readRunFacts, type Bar, type Scan } from '../store/read-facts.ts'
import type { Store } from '../store/tables.ts'
import { settle } from './settle.ts'

export interface VerifyOptions {
  /** Only of this task. */
  readonly task?: string | undefined
  readonly signal?: AbortSignal
}

/** How much was looked at. */
export interface Verified {
  readonly runs: number
  readonly lines: number
  readonly effects: number
  readonly scopes: number
}

const PAGE = 1000
/** A run that moves while it is looked at is looked at again. */
const MAX_LOOKS = 20

/** A finding as it is found; returns how much was looked at. */
export async function* verify(store: Store, patienceMs: number, { task, signal }: VerifyOptions): AsyncGenerator<Finding, Verified> {
  if (task !== undefined) checkTaskName(task)
  const ask = <T>(work: () => Promise<T>): Promise<T> => {
    signal?.throwIfAborted()
    return settle(store, patienceMs, work)
  }
  const scan: Scan = { task, pageSize: PAGE }
  const count = { runs: 0, lines: 0, effects: 0, scopes: 0 }
  const fences = new Map<string, FenceSet>()

  for (const { activeKey, holders } of await ask(() => doubleActiveKeys(store))) yield { promise: 3, task: null, key: activeKey, problem: `${holders.length} runs hold it: ${holders.slice(0, 10).join(', ')}` }
  const bars = await ask(() => readBars(store))
  for await (const page of pagesByKey((after) => ask(() => readRunFacts(store, scan, after)), ({ taskKey }) => taskKey)) {
    count.runs += page.length
    const lines = await ask(() => readAttemptLines(store, page.map(({ taskKey }) => taskKey)))
    for (const run of page) {
      const own = lines.get(run.taskKey) ?? []
      if (checkRun(run, own).length > 0) yield* await ask(() => surely(store, run))
      yield* reopened(run, bars.get(run.task) ?? [])
      yield* repeatedFences(fences, run, own)
    }
  }
  for (let after = { taskKey: '', id: 0 }; ; ) {
    const page = await ask(() => readLines(store, scan, after))
    if (page.length === 0) break
    count.lines += page.length
    const present = await ask(() => presentRuns(store, [...new Set(page.map(({ taskKey }) => taskKey))]))
    for (const line of page) yield* checkLine(line, present.has(line.taskKey) || !(await ask(() => isOrphaned(store, line.taskKey))))
    after = page.at(-1)!
  }
  for await (const page of pagesByKey((after) => ask(() => readEffectFacts(store, scan, after)), ({ effectKey }) => effectKey)) {
    count.effects += page.length
    for (const effect of page) yield* checkEffect(effect)
  }
  // After the runs: counters only grow, so one that is behind what was read before is behind for certain.
  const scopes = [...fences.keys()]
  for (let at = 0; at < scopes.length; at += PAGE) yield* behind(fences, await ask(() => readCounters(store, scopes.slice(at, at + PAGE))), scopes.slice(at, at + PAGE))
  return { ...count, scopes: scopes.length }
}

async function* pagesByKey<T>(read: (after: string) => Promise<T[]>, keyOf: (row: T) => string): AsyncGenerator<T[]> {
  for (let after = ''; ; ) {
    const page = await read(after)
    if (page.length === 0) return
    yield page
    after = keyOf(page.at(-1)!)
  }
}

/** Row and lines are read one after the other; only what is found while the row stands still is found. */
async function surely(store: Store, seen: RunFacts): Promise<Finding[]> {
  let before: RunFacts | null = seen
  for (let look = 0; look < MAX_LOOKS && before; look++) {
    before = await readRunFact(store, seen.taskKey)
    const lines: AttemptLine[] = (await readAttemptLines(store, [seen.taskKey])).get(seen.taskKey) ?? []
    const after = await readRunFact(store, seen.taskKey)
    if (before && after && before.status === after.status && before.attempt === after.attempt && before.fence === after.fence) return checkRun(before, lines)
  }
  return [] // It is gone, or moves as fast as we can look.
}

/** A prune may have been between the line and its run. */
async function isOrphaned(store: Store, taskKey: string): Promise<boolean> {
  const lines = await readAttemptLines(store, [taskKey])
  return lines.size > 0 && (await readRunFact(store, taskKey)) === null
}

function* reopened({ task, taskKey, windowStart, createdAt }: RunFacts, bars: readonly Bar[]): Generator<Finding> {
  const bar = bars.find(({ prunedBefore, since }) => windowStart !== null && windowStart < prunedBefore && createdAt > since)
  if (bar) yield { promise: 1, task, key: taskKey, problem: `is there since ${createdAt.toISOString()}, though windows before ${bar.prunedBefore.toISOString()} were pruned at ${bar.since.toISOString()}` }
}

/** The row repeats the fence of its last line where it is not held. */
function* repeatedFences(fences: Map<string, FenceSet>, run: RunFacts, lines: readonly AttemptLine[]): Generator<Finding> {
  const own = new Set([...lines.map(({ fence }) => fence), run.fence].filter((fence) => fence !== null && fence > 0n)) as Set<bigint>
  if (own.size === 0) return
  const scope = fenceScope({ concurrencyKey: run.concurrencyKey, task: run.task })
  const known = fences.get(scope) ?? new FenceSet()
  fences.set(scope, known)
  for (const fence of own) if (!known.add(fence)) yield { promise: 5, task: run.task, key: run.taskKey, problem: `has fence ${fence}, which another run of the scope ${scope} had as well` }
}

function* behind(fences: Map<string, FenceSet>, counters: Map<string, bigint>, scopes: readonly string[]): Generator<Finding> {
  for (const scope of scopes) {
    const [counter, { greatest }] = [counters.get(scope), fences.get(scope)!]
    if (counter === undefined) yield { promise: 5, task: null, key: scope, problem: `the scope has no counter, and fence ${greatest} was handed out` }
    else if (counter < greatest) yield { promise: 5, task: null, key: scope, problem: `the counter is at ${counter}, and fence ${greatest} was handed out` }
  }
}

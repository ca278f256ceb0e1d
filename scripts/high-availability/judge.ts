/** Decides from the workers' own records and the tables alone which promises held. */
import { violations } from '../../test/fault/violations.ts'
import type { TestDatabase } from '../../test/support/databases.ts'
import { readEvents, type Event } from './events.ts'

export type Query = TestDatabase['admin']

export interface Verdict {
  readonly started: number
  readonly acknowledged: number
  /** Completions that were acknowledged and are not in the tables. */
  readonly lost: number
  /** Starts of a key that had been acknowledged before. */
  readonly doubled: number
  /** Starts of a key that had been started before and not been acknowledged. */
  readonly repeated: number
  /** Fences that two claims of one scope were given. */
  readonly fencesTwice: number
  /** Runs of one concurrency key that were at work at the same time. */
  readonly together: number
  /** Rows that contradict each other. */
  readonly contradictions: number
  readonly refused: Readonly<Record<string, number>>
}

/** @param completed what was in the tables when the work ended, before any key was launched again */
export async function judge(folder: string, query: Query, url: string, completed: ReadonlySet<string>): Promise<Verdict> {
  const events = readEvents(folder)
  const starts = events.filter(({ what }) => what === 'started')
  const acknowledged = new Map(events.flatMap(({ what, key, at }) => (what === 'acknowledged' ? [[key!, at] as const] : [])).toReversed())
  const firsts = new Set<string>()
  const [again, doubled] = [starts.filter(({ key }) => firsts.has(key!) || !firsts.add(key!)), starts.filter(({ key, at }) => (acknowledged.get(key!) ?? Infinity) < at)]
  const fences = Map.groupBy(starts, ({ task, fence }) => `${task} ${fence}`)
  return {
    started: starts.length,
    acknowledged: acknowledged.size,
    lost: [...acknowledged.keys()].filter((key) => !completed.has(key)).length,
    doubled: doubled.length,
    repeated: again.length - doubled.length,
    fencesTwice: [...fences.values()].filter((claims) => claims.length > 1).length,
    together: countTogether(events),
    contradictions: (await violations({ admin: query }, url)).length,
    refused: countBy(events.filter(({ what }) => what === 'refused').map(({ code }) => code!)),
  }
}

export async function completedKeys(query: Query, url: string): Promise<Set<string>> {
  return new Set((await query(`select task_key from task_runs where status = 'completed'`, url)).map(({ task_key: key }) => String(key)))
}

function countTogether(events: readonly Event[]): number {
  let count = 0
  const working = new Set<string>()
  for (const { what, task, key, attempt } of events) {
    if (task !== 'turn') continue
    if (what === 'ended') working.delete(`${key} ${attempt}`)
    if (what === 'started' && working.add(`${key} ${attempt}`).size > 1) count++
  }
  return count
}

/** The longest time in which nobody's completion was acknowledged, of all that reach into the span. */
export function longestPauseMs(folder: string, from: number, to: number): number {
  const times = readEvents(folder).flatMap(({ what, at }) => (what === 'acknowledged' ? [at] : []))
  return Math.max(...times.map((at, n) => (at > from && at < to && n > 0 ? at - times[n - 1]! : 0)))
}

function countBy(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

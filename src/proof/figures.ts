/** Numbers of a proof, counted from the same evidence as the verdicts. */
import type { Evidence } from './evidence.ts'
import { KILLED } from './read-history.ts'
import { refusedWrites } from './tenures.ts'

export interface Figures {
  readonly runs: number
  /** Those of them that were enqueued. */
  readonly queued: number
  readonly claims: number
  readonly conflicts: number
  /** Starts of a job, as the witness saw them. */
  readonly starts: number
  /** Starts after an earlier attempt had started and was lost: work that was done again, in part or whole. */
  readonly repeated: number
  /** Effects that a later attempt would have repeated: the record stopped it. */
  readonly caughtByEffect: number
  /** Writes to a protected resource that came from behind: the fence stopped them. */
  readonly caughtByFence: number
  /** Writes of those who were not the holder any more, and were told so. */
  readonly refused: number
  /** Milliseconds from the death of a holder to the next attempt at its run, in order. */
  readonly recoveryMs: readonly number[]
}

export function figuresOf({ operations, tenures, runs, lines, queued }: Evidence): Figures {
  const starts = operations.filter(({ did }) => did === 'start')
  const lost = new Set([...lines].flatMap(([key, ofKey]) => ofKey.filter(({ outcome }) => outcome === 'lost').map(({ fence }) => `${key} ${String(fence)}`)))
  const repeated = [...Map.groupBy(starts, ({ facts }) => String(facts['key'])).values()].flatMap((ofKey) => ofKey.slice(1).filter((_, index) => lost.has(`${String(ofKey[index]!.facts['key'])} ${String(ofKey[index]!.facts['fence'])}`)))
  const effects = operations.filter(({ did }) => did === 'effect')
  return {
    runs: runs.length,
    queued: runs.filter(({ task }) => queued.has(task)).length,
    claims: tenures.length,
    conflicts: operations.filter(({ facts }) => facts['got'] === 'conflict').length,
    starts: starts.length,
    repeated: repeated.length,
    caughtByEffect: effects.filter(({ end, facts }) => (end === 'refused' && facts['code'] !== 'LEASE_LOST') || (end === 'returned' && facts['performedBy'] !== facts['attempt'])).length,
    caughtByFence: operations.filter(({ did, end }) => did === 'guard' && end === 'refused').length,
    refused: tenures.reduce((sum, tenure) => sum + refusedWrites(tenure).length, 0),
    recoveryMs: recoveries({ operations, tenures }),
  }
}

function recoveries({ operations, tenures }: Pick<Evidence, 'operations' | 'tenures'>): number[] {
  const kills = operations.filter(({ did }) => did === KILLED)
  const byKey = Map.groupBy(tenures, ({ key }) => key)
  return kills
    .flatMap(({ invokedAt: at, facts }) =>
      tenures
        .filter(({ claim, asked }) => claim.by === facts['victim'] && !asked.some(({ did, endedAt, end }) => end === 'returned' && endedAt <= at && did !== 'heartbeat' && did !== 'effect' && did !== 'guard'))
        .flatMap(({ key, fence }) => byKey.get(key)!.filter((next) => next.fence > fence && next.claim.endedAt > at).slice(0, 1).map(({ claim }) => claim.endedAt - at)),
    )
    .toSorted((a, b) => a - b)
}

/** The value below which this part of the sorted numbers lies; NaN for none. */
export function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? NaN
}

export function summed(all: readonly Figures[]): Figures {
  const sum = (of: (one: Figures) => number) => all.reduce((total, one) => total + of(one), 0)
  return {
    runs: sum(({ runs }) => runs), queued: sum(({ queued }) => queued), claims: sum(({ claims }) => claims), conflicts: sum(({ conflicts }) => conflicts), starts: sum(({ starts }) => starts), repeated: sum(({ repeated }) => repeated),
    caughtByEffect: sum(({ caughtByEffect }) => caughtByEffect), caughtByFence: sum(({ caughtByFence }) => caughtByFence), refused: sum(({ refused }) => refused),
    recoveryMs: all.flatMap(({ recoveryMs }) => recoveryMs).toSorted((a, b) => a - b),
  }
}

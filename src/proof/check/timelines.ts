/** What the tables say of queued runs by the database's clock: never more than the limit at a moment, and fences that grow with the time. */
import type { HistoryLine } from '../../index.ts'
import type { Evidence } from '../evidence.ts'
import { Look, type Verdict } from '../promises.ts'

/** An attempt as the tables have it. */
interface Span {
  readonly name: string
  readonly fence: bigint
  readonly from: number
  readonly to: number
}

export function checkTimelines({ runs, lines, queued }: Evidence): Verdict[] {
  const [exclusion, fences] = [new Look('exclusion'), new Look('fences')]
  const ofQueue = runs.filter(({ task }) => queued.has(task))
  for (const [scope, sharing] of Map.groupBy(ofQueue, ({ concurrencyKey, taskKey }) => concurrencyKey ?? taskKey)) {
    const limit = queued.get(sharing[0]!.task)!.concurrency?.limit ?? 1
    const spans = sharing.flatMap(({ taskKey }) => (lines.get(taskKey) ?? []).flatMap(spanOf)).toSorted((a, b) => (a.fence < b.fence ? -1 : 1))
    lookAtSpans(scope, spans, limit, exclusion, fences)
  }
  return [exclusion.verdict(), fences.verdict()]
}

function spanOf({ taskKey, attempt, fence, startedAt, endedAt }: HistoryLine): Span[] {
  if (attempt === null || fence === null || startedAt === null) return []
  return [{ name: `${taskKey} attempt ${attempt} (fence ${fence})`, fence, from: startedAt.getTime(), to: endedAt?.getTime() ?? Infinity }]
}

/** @param spans in the order of their fences */
function lookAtSpans(scope: string, spans: readonly Span[], limit: number, exclusion: Look, fences: Look): void {
  let open: Span[] = []
  for (const [index, span] of spans.entries()) {
    const before = spans[index - 1]
    fences.that(before === undefined || (before.fence < span.fence && before.from <= span.from), () => `${span.name} of ${scope} began at ${instant(span.from)}, ${before!.name} at ${instant(before!.from)}`)
    open = [...open.filter(({ to }) => to > span.from), span]
    exclusion.that(open.length <= limit, () => `by the tables ${open.length} of ${scope} were processing at ${instant(span.from)}: ${open.map(({ name }) => name).join(', ')}`)
  }
}

function instant(ms: number): string {
  return new Date(ms).toISOString()
}

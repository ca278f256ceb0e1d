/** What there is to measure of a task: counters that never fall, and the state of things right now. */

/** What ended: a run for good, or an attempt or a launch that came to nothing. */
export type Ends = 'run' | 'attempt'

export interface EndingTotal {
  readonly task: string
  readonly ends: Ends
  /** `completed`, `failed`; of an attempt `lost`, `released`, `conflict`, … */
  readonly outcome: string
  /** Empty where there is none. */
  readonly reason: string
  readonly endings: number
  /** How long they took in all; of runs. */
  readonly seconds: number
}

export interface TaskNow {
  readonly task: string
  readonly pending: number
  readonly processing: number
  readonly expiredLeases: number
  readonly oldestPendingAt: Date | null
  readonly effectsInDoubt: number
  readonly lastSuccessAt: Date | null
  readonly lastFailureAt: Date | null
  readonly nextDueAt: Date | null
}

export interface Measures {
  readonly runs: readonly EndingTotal[]
  readonly attempts: readonly EndingTotal[]
  readonly now: readonly TaskNow[]
}

/** The sum of totals of the same task, outcome and reason. */
export function addTotals(...lists: readonly (readonly EndingTotal[])[]): EndingTotal[] {
  const sums = new Map<string, EndingTotal>()
  for (const total of lists.flat()) {
    const key = [total.task, total.ends, total.outcome, total.reason].join('\0')
    const sum = sums.get(key)
    sums.set(key, sum ? { ...sum, endings: sum.endings + total.endings, seconds: sum.seconds + total.seconds } : total)
  }
  return [...sums.values()]
}

/** The tasks beyond the first `most`, by name, as one: a label of few values is what a time series database can bear. */
export function boundTasks({ runs, attempts, now }: Measures, most: number, other: string): Measures {
  const names = [...new Set([...now, ...runs, ...attempts].map(({ task }) => task))].toSorted()
  if (names.length <= most) return { runs, attempts, now }
  const kept = new Set(names.slice(0, most))
  const bounded = (totals: readonly EndingTotal[]) => addTotals(totals.map((total) => ({ ...total, task: kept.has(total.task) ? total.task : other })))
  const others = now.filter(({ task }) => !kept.has(task))
  return {
    runs: bounded(runs),
    attempts: bounded(attempts),
    now: [...now.filter(({ task }) => kept.has(task)), ...(others.length === 0 ? [] : [others.map((one) => ({ ...one, task: other })).reduce(together)])],
  }
}

function together(one: TaskNow, more: TaskNow): TaskNow {
  return {
    task: one.task,
    pending: one.pending + more.pending,
    processing: one.processing + more.processing,
    expiredLeases: one.expiredLeases + more.expiredLeases,
    oldestPendingAt: pick(Math.min, one.oldestPendingAt, more.oldestPendingAt),
    effectsInDoubt: one.effectsInDoubt + more.effectsInDoubt,
    lastSuccessAt: pick(Math.max, one.lastSuccessAt, more.lastSuccessAt),
    lastFailureAt: pick(Math.max, one.lastFailureAt, more.lastFailureAt),
    nextDueAt: pick(Math.min, one.nextDueAt, more.nextDueAt),
  }
}

function pick(choose: (...values: number[]) => number, ...dates: readonly (Date | null)[]): Date | null {
  const given = dates.filter((date) => date !== null)
  return given.length === 0 ? null : new Date(choose(...given.map((date) => date.getTime())))
}

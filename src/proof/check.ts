/** Decides from the histories and the tables alone whether each promise was kept. */
import { checkOwnership } from './check/ownership.ts'
import { checkRecords } from './check/records.ts'
import { checkTimelines } from './check/timelines.ts'
import { checkWitnesses } from './check/witnesses.ts'
import type { Evidence } from './evidence.ts'
import { PROMISES, type PromiseName, type Verdict } from './promises.ts'

/** One verdict a promise, in their order. */
export function check(evidence: Evidence): Verdict[] {
  return together([...checkOwnership(evidence), ...checkRecords(evidence), ...checkTimelines(evidence), ...checkWitnesses(evidence)])
}

/** Verdicts on the same promise become one. */
export function together(verdicts: readonly Verdict[]): Verdict[] {
  return (Object.keys(PROMISES) as PromiseName[]).map((promise) => {
    const same = verdicts.filter((verdict) => verdict.promise === promise)
    return { promise, looked: same.reduce((sum, { looked }) => sum + looked, 0), broken: same.flatMap(({ broken }) => broken) }
  })
}

/** What verify finds: a promise of the ledger that its rows contradict. */

/** The promises that can be read off the rows, by their number in docs/upkeep.md. */
export const PROMISES: Readonly<Record<number, string>> = {
  1: 'a completed run does not run again, and pruning reopens no window',
  3: 'one run of a concurrency key is processing',
  5: 'fences grow within their scope',
  7: 'attempts begun are attempts counted, and none is handed out beyond the most',
  8: 'what was acknowledged is there, whole',
  10: 'an effect that is done stays done',
  11: 'a conflict is neither a failure nor a success',
}

export interface Finding {
  readonly promise: number
  readonly task: string | null
  /** The run, effect, scope or active key it is about. */
  readonly key: string
  /** In words, with the facts. */
  readonly problem: string
}

/** The promises of the ledger that a proof looks at, in words for people. */

export const PROMISES = {
  'one-run': 'A key has one row, and a completed run does not run again',
  'one-winner': 'Of simultaneous launches of a key one claims; every other is a recorded conflict',
  exclusion: 'At most one run of a concurrency key is processing, or as many as it says',
  'holder-only': "Only the holder's writes are accepted, and nobody takes over before its lease is over",
  fences: 'Fences grow within their scope, and a protected resource refuses the smaller',
  recovery: 'A run whose owner died is taken up again, and ends',
  attempts: 'Attempts begun are attempts counted, and none is beyond the limit',
  durable: 'What was acknowledged is there',
  'ledger-first': 'No job starts that the ledger does not know',
  effects: 'An effect is performed once; one in doubt is not silently repeated',
  conflicts: 'A conflict counts as neither failure nor success',
  'no-surprise': 'Whatever failed, failed by a word of docs/errors.md',
} as const

export type PromiseName = keyof typeof PROMISES

/** What a check found: what it looked at, and each case in which the promise was not kept. */
export interface Verdict {
  readonly promise: PromiseName
  readonly looked: number
  readonly broken: readonly string[]
}

/** Collects the verdict on one promise. */
export class Look {
  readonly #promise: PromiseName
  readonly #broken: string[] = []
  #looked = 0

  constructor(promise: PromiseName) {
    this.#promise = promise
  }

  /** @param otherwise said when it is not so */
  that(isSo: boolean, otherwise: () => string): void {
    this.#looked++
    if (!isSo) this.#broken.push(otherwise())
  }

  verdict(): Verdict {
    return { promise: this.#promise, looked: this.#looked, broken: this.#broken }
  }
}

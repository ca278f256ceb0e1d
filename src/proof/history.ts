/**
 * What a process of the proof did and saw, a JSON line each, in a file of its own: written before it asks and when it has
 * the answer, so that a process which dies in between leaves a question without an answer.
 */
import { closeSync, openSync, writeSync } from 'node:fs'
import { isLedgerError } from '../index.ts'

export type Facts = Readonly<Record<string, string | number | boolean | null>>

/**
 * `seen` stands alone; the others end what was `invoked` under the same number. `refused`: the ledger said no, by a code
 * that is a promise of its own; `unknown`: it could not say; `broken`: it failed as nobody expects it to.
 */
export type Phase = 'invoked' | 'returned' | 'refused' | 'unknown' | 'broken' | 'seen'

export interface Line {
  /** Milliseconds of the host's monotonic clock, which all of its processes share and nobody sets. */
  readonly at: number
  readonly did: string
  readonly phase: Phase
  readonly number: number
  readonly facts: Facts
}

export type Answer<T> = { readonly end: 'returned'; readonly value: T } | { readonly end: 'refused' | 'unknown' | 'broken'; readonly code: string }

/** Waits for its answer. */
export interface Asked {
  returned(facts?: Facts): void
  failed(error: unknown): Exclude<Answer<never>, { readonly end: 'returned' }>
}

/** Words of the ledger that say for certain: no, and nothing was changed. */
const REFUSALS = new Set(['LEASE_LOST', 'STALE_FENCE', 'EFFECT_IN_DOUBT', 'EFFECT_HELD', 'RUN_CANCELLED', 'RUN_NOT_FOUND'])

export class HistoryWriter {
  readonly #file: number
  #numbers = 0

  /** Several processes may append to one file: a line is one write. */
  constructor(path: string) {
    this.#file = openSync(path, 'a')
  }

  seen(did: string, facts: Facts = {}): void {
    this.#write(did, 'seen', ++this.#numbers, facts)
  }

  /** Notes that it is asked for. @returns notes the answer, or what it failed with */
  begin(did: string, facts: Facts): Asked {
    const number = ++this.#numbers
    this.#write(did, 'invoked', number, facts)
    return {
      returned: (answer = {}) => this.#write(did, 'returned', number, answer),
      failed: (error) => {
        const code = isLedgerError(error) ? error.code : 'none'
        const end = REFUSALS.has(code) ? 'refused' : code === 'DATABASE_UNAVAILABLE' ? 'unknown' : 'broken'
        this.#write(did, end, number, { code, ...(end === 'broken' && { problem: String(error).slice(0, 500) }) })
        return { end, code }
      },
    }
  }

  /** Does it, and notes when it was asked for, when the answer came and what it was. Never throws what `act` throws. */
  async act<T>(did: string, facts: Facts, act: () => Promise<T>, tell: (value: T) => Facts = () => ({})): Promise<Answer<T>> {
    const asked = this.begin(did, facts)
    try {
      const value = await act()
      asked.returned(tell(value))
      return { end: 'returned', value }
    } catch (error) {
      return asked.failed(error)
    }
  }

  close(): void {
    closeSync(this.#file)
  }

  #write(did: string, phase: Phase, number: number, facts: Facts): void {
    const line: Line = { at: monotonicNow(), did, phase, number, facts }
    writeSync(this.#file, `${JSON.stringify(line)}\n`)
  }
}

export function monotonicNow(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

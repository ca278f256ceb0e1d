/** The effects of all runs, as an operator looks at them, and the operator's word on those in doubt. */
import type { EffectRecord } from '../model/effect.ts'
import { invalidOption, LedgerError } from '../model/errors.ts'
import { isJsonText, jsonText } from '../model/json-value.ts'
import { boundText } from '../model/text.ts'
import { resolveEffect } from '../store/end-effect.ts'
import { listEffects, readEffect, type EffectFilter, type SeenEffect } from '../store/read-effect.ts'
import type { Store } from '../store/tables.ts'
import { isDead } from './acquire.ts'
import { settle } from './settle.ts'

export interface Resolution {
  /** `done`: it happened, and is never performed again. `not_done`: it did not, and may be begun again. */
  readonly verdict: 'done' | 'not_done'
  /** Who says so; recorded with the time. */
  readonly by: string
  /** What it returned, for `done`: what later attempts get. */
  readonly result?: unknown
}

export class Effects {
  readonly #store: Store
  readonly #patienceMs: number

  /** Use ledger.effects. */
  constructor(store: Store, patienceMs: number) {
    this.#store = store
    this.#patienceMs = patienceMs
  }

  /** The newest first; with `inDoubt` only those of which nobody knows whether they happened, the oldest first. */
  async list(filter: Partial<EffectFilter> = {}): Promise<EffectRecord[]> {
    return settle(this.#store, this.#patienceMs, () => listEffects(this.#store, { limit: 50, ...filter }))
  }

  /** @throws EFFECT_NOT_FOUND */
  async read(effectKey: string): Promise<EffectRecord> {
    const { processIdentity: _, ...record } = await this.#seen(effectKey)
    return record
  }

  /**
   * Records an operator's word on an effect in doubt, and returns the record as it is then. The result of one that is
   * done without a recorded result may be supplied as well.
   * @throws EFFECT_NOT_FOUND; EFFECT_HELD while a live attempt performs it; INVALID_OPTION for one that is not in doubt
   */
  async resolve(effectKey: string, { verdict, by, result }: Resolution): Promise<EffectRecord> {
    if (by === '') throw invalidOption('by', 'must say who decides')
    const json = jsonText(result)
    if ('problem' in json) throw invalidOption('result', json.problem)
    if (verdict === 'not_done' && json.text !== null) throw invalidOption('result', 'only goes with done')
    const seen = await this.#seen(effectKey)
    checkResolvable(seen, verdict, json.text)
    const name = boundText(by, 255, 'head')
    const resolved = await settle(this.#store, this.#patienceMs, () => resolveEffect(this.#store, seen, verdict, name, json.text))
    const now = await this.read(effectKey)
    // After an unknown commit the row itself says whether it was reached.
    if (!resolved && (now.status !== verdict || now.resolvedBy !== name)) throw new LedgerError('EFFECT_HELD', `${effectKey} was changed by somebody else meanwhile; it is ${now.status} now`, { effectKey, status: now.status })
    return now
  }

  async #seen(effectKey: string): Promise<SeenEffect> {
    const seen = await settle(this.#store, this.#patienceMs, () => readEffect(this.#store, effectKey))
    if (!seen) throw new LedgerError('EFFECT_NOT_FOUND', `no effect ${JSON.stringify(effectKey)} is recorded`, { effectKey })
    return seen
  }
}

function checkResolvable(seen: SeenEffect, verdict: Resolution['verdict'], result: string | null): void {
  if (seen.live && !isDead(seen)) throw new LedgerError('EFFECT_HELD', `${seen.effectKey} is being performed right now by attempt ${seen.attempt} of ${seen.taskKey} (${seen.host ?? 'unknown host'} pid ${seen.pid ?? '?'}); its own word comes first`, { effectKey: seen.effectKey, taskKey: seen.taskKey, attempt: seen.attempt })
  const lacksResult = seen.problem !== null || (seen.result !== null && !isJsonText(seen.result))
  const suppliesResult = seen.status === 'done' && lacksResult && verdict === 'done' && result !== null
  const isOpen = seen.status === 'started' || seen.status === 'in_doubt'
  if (!isOpen && !suppliesResult) throw invalidOption('effect', `${seen.effectKey} is ${seen.status}, not in doubt`)
}

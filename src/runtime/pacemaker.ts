/** Keeps the claims of this process alive, on a connection of its own that no job can exhaust. */
import type { LeaseTerms } from '../model/lease.ts'
import type { Holder } from '../model/run.ts'
import { heartbeat, type Beat } from '../store/close.ts'
import type { Store } from '../store/tables.ts'
import { Heart, type HeartEvents } from './heart.ts'

export interface Pulse {
  stop(): void
}

export interface Pacemaker {
  /** @param claimedAt when the claim was sent, by monotonicMs() */
  start(of: Holder, terms: LeaseTerms, claimedAt: number, events: HeartEvents): Pulse
  close(): Promise<void>
}

/** Opens the heartbeats' own connection; called at the first beat, so that a short job never needs one. */
export type OpenHeartStore = () => Promise<Store>

/** The pacemaker on this thread's event loop, for a process whose loop nobody blocks (`exec`). */
export class InlinePacemaker implements Pacemaker {
  readonly #open: OpenHeartStore
  readonly #hearts = new Set<Heart>()
  #store: Promise<Store> | undefined

  constructor(open: OpenHeartStore) {
    this.#open = open
  }

  start(of: Holder, terms: LeaseTerms, claimedAt: number, events: HeartEvents): Pulse {
    const heart = new Heart((holder) => this.#beat(holder), of, terms, claimedAt, events)
    this.#hearts.add(heart)
    return {
      stop: () => {
        heart.stop()
        this.#hearts.delete(heart)
      },
    }
  }

  async close(): Promise<void> {
    for (const heart of this.#hearts) heart.stop()
    const store = await this.#store?.catch(() => undefined)
    await store?.close()
  }

  async #beat(of: Holder): Promise<Beat> {
    this.#store ??= this.#open()
    try {
      return await heartbeat(await this.#store, of)
    } catch (error) {
      // An opening that failed is tried anew at the next beat; an open store replaces its broken connections itself.
      await this.#store.catch(() => (this.#store = undefined))
      throw error
    }
  }
}

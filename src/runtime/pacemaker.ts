/** Keeps the claims of this process alive, on a connection of its own that no job can exhaust. */
import type { LeaseTerms } from '../model/lease.ts'
import type { Holder } from '../model/run.ts'
import { heartbeat } from '../store/close.ts'
import { heartbeatMany } from '../store/heartbeat-batch.ts'
import type { Store } from '../store/tables.ts'
import { GroupHeart, type GroupEvents, type HeldRun } from './group-heart.ts'
import { Heart, type HeartEvents } from './heart.ts'

export interface Pulse {
  stop(): void
}

/** The runs of a worker, renewed together. They are named as nameOf() does. */
export interface PulseGroup {
  hold(runs: readonly HeldRun[]): void
  letGo(names: readonly string[]): void
  stop(): void
}

export interface Pacemaker {
  /** @param claimedAt when the claim was sent, by monotonicMs() */
  start(of: Holder, terms: LeaseTerms, claimedAt: number, events: HeartEvents): Pulse
  /** @param hungAfterMs a program whose event loop is blocked for longer counts as hung: its runs are renewed no more */
  group(terms: LeaseTerms, events: GroupEvents, hungAfterMs: number): PulseGroup
  close(): Promise<void>
}

/** Opens the heartbeats' own connection; called at the first beat, so that a short job never needs one. */
export type OpenHeartStore = () => Promise<Store>

/** The pacemaker on this thread's event loop, for a process whose loop nobody blocks (`exec`). */
export class InlinePacemaker implements Pacemaker {
  readonly #open: OpenHeartStore
  readonly #hearts = new Set<Heart>()
  readonly #groups = new Set<GroupHeart>()
  #store: Promise<Store> | undefined

  constructor(open: OpenHeartStore) {
    this.#open = open
  }

  start(of: Holder, terms: LeaseTerms, claimedAt: number, events: HeartEvents): Pulse {
    const heart = new Heart((holder) => this.#ask((store) => heartbeat(store, holder)), of, terms, claimedAt, events)
    this.#hearts.add(heart)
    return {
      stop: () => {
        heart.stop()
        this.#hearts.delete(heart)
      },
    }
  }

  /** On this loop a hung program sends no beat anyway. @param isHung for a loop that is not the program's own */
  group(terms: LeaseTerms, events: GroupEvents, _hungAfterMs: number, isHung?: () => boolean): PulseGroup {
    const heart = new GroupHeart((held) => this.#ask((store) => heartbeatMany(store, held)), terms, events, isHung)
    this.#groups.add(heart)
    return {
      hold: (runs) => heart.hold(runs),
      letGo: (names) => heart.letGo(names),
      stop: () => {
        heart.stop()
        this.#groups.delete(heart)
      },
    }
  }

  async close(): Promise<void> {
    for (const heart of [...this.#hearts, ...this.#groups]) heart.stop()
    const store = await this.#store?.catch(() => undefined)
    await store?.close()
  }

  async #ask<T>(question: (store: Store) => Promise<T>): Promise<T> {
    this.#store ??= this.#open()
    try {
      return await question(await this.#store)
    } catch (error) {
      // An opening that failed is tried anew at the next beat; an open store replaces its broken connections itself.
      await this.#store.catch(() => (this.#store = undefined))
      throw error
    }
  }
}

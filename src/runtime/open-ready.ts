/** What a ledger stands on when it is opened: a store whose schema is ours, and somewhere for its heartbeats. */
import type { ClockOffset } from '../dialect/dialect.ts'
import type { Logger } from '../model/event.ts'
import type { Store } from '../store/tables.ts'
import { Observer } from './observer.ts'
import { openHeartStore, openStore, openWorkerStore } from './open-store.ts'
import { InlinePacemaker, type Pacemaker } from './pacemaker.ts'
import { readySchema } from './schema.ts'
import { settle } from './settle.ts'
import { openTelemetry } from './telemetry.ts'
import { ThreadedPacemaker } from './threaded-pacemaker.ts'

/** @returns the store, and whether the database could not be reached at first */
export async function openReady(url: string, patienceMs: number, clock: ClockOffset | undefined): Promise<{ store: Store; sawOutage: boolean }> {
  const connectTimeoutMs = Math.min(Math.max(patienceMs, 500), 60_000)
  let sawOutage = false
  const store = await settle({ diagnose: () => ({ kind: 'other' }), place: '' }, patienceMs, (again) => {
    sawOutage ||= again
    return openStore(url, { connectTimeoutMs, ...(clock && { clock }) })
  })
  try {
    await settle(store, patienceMs, (again) => {
      sawOutage ||= again
      return readySchema(store, url)
    })
    return { store, sawOutage }
  } catch (error) {
    await store.close().catch(() => {}) // What went wrong first is what counts.
    throw error
  }
}

/** A database that is only here (in memory, or with a clock of its own) is shared with the heartbeats. */
export function pacemakerOf(url: string, store: Store, { clock, heartbeats }: { readonly clock?: ClockOffset | undefined; readonly heartbeats?: 'thread' | 'loop' | undefined }): Pacemaker {
  if (isOnlyHere(url, clock)) return new InlinePacemaker(async () => ({ ...store, close: async () => {} }))
  return heartbeats === 'loop' ? new InlinePacemaker(() => openHeartStore(url)) : new ThreadedPacemaker(url)
}

/** The connections of a worker, likewise shared or its own. */
export function workerStoreOf(url: string, store: Store, patienceMs: number, { clock }: { readonly clock?: ClockOffset | undefined }): () => Promise<Store> {
  return isOnlyHere(url, clock) ? async () => ({ ...store, close: async () => {} }) : () => settle(store, patienceMs, () => openWorkerStore(url))
}

function isOnlyHere(url: string, clock: ClockOffset | undefined): boolean {
  return clock !== undefined || /:memory:(\?|$)/.test(url)
}

/** Who hears of what the ledger does. */
export async function observerOf({ logger, telemetry, traceparent }: { readonly logger?: Logger | undefined; readonly telemetry?: boolean; readonly traceparent?: string | undefined }): Promise<Observer> {
  return new Observer(logger, telemetry === false ? null : await openTelemetry(), traceparent)
}

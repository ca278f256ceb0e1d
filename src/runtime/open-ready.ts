/** Opens a store and makes sure of its schema, asking again for as long as the caller's patience lasts. */
import type { ClockOffset } from '../dialect/dialect.ts'
import type { Store } from '../store/tables.ts'
import { openStore } from './open-store.ts'
import { readySchema } from './schema.ts'
import { settle } from './settle.ts'

/** @returns `sawOutage`: the database could not be reached at first @throws what openLedger throws */
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

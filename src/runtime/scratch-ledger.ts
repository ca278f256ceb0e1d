/** A ledger beside the one at a URL, for tests that may do to it what they like. */
import { makeScratch, type Scratch } from '../dialect/scratch.ts'
import { unreachable } from '../dialect/unreachable.ts'
import { openStore } from './open-store.ts'
import { migrate } from './schema.ts'

/**
 * Makes a ledger of its own and migrates it: in a schema of PostgreSQL, a database of MySQL or MariaDB, a file beside
 * SQLite's; or in tables with a prefix, where this user may make no schema or database. `remove` takes it away again. @throws INVALID_OPTION, DATABASE_UNAVAILABLE
 */
export async function makeScratchLedger(url: string, patienceMs = 10_000): Promise<Scratch> {
  const scratch = await made(url)
  try {
    await migrate(scratch.url, patienceMs)
    return scratch
  } catch (error) {
    await scratch.remove().catch(() => {}) // What went wrong first is what counts.
    throw error
  }
}

async function made(url: string): Promise<Scratch> {
  try {
    return await makeScratch(url)
  } catch (error) {
    const { diagnose, place, close } = await openStore(url)
    await close()
    throw unreachable(diagnose, place, error)
  }
}

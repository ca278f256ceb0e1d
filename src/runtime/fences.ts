/** Fences at the protected resource: a token that is behind is refused, and after a restored backup all are jumped. */
import { sql } from 'kysely'
import { borrow, type CallerConnection } from '../dialect/caller-connection.ts'
import { FENCED_RESOURCES, guardFence } from '../dialect/fence-guard.ts'
import { invalidOption, LedgerError } from '../model/errors.ts'
import { checkKey } from '../model/names.ts'
import { bumpFences } from '../store/fence.ts'
import type { Store } from '../store/tables.ts'
import { settle } from './settle.ts'

/** A fence, as the claim or RUNLEDGER_FENCE gives it. */
export type FenceToken = bigint | number | string

const MAX_TOKEN = 2n ** 63n - 1n

/** @throws INVALID_OPTION for anything that is not a whole number from 1 to 2^63-1, or a number too large to be exact */
function tokenOf(token: FenceToken): bigint {
  const exact = typeof token === 'number' ? Number.isSafeInteger(token) : typeof token === 'bigint' || /^\d{1,19}$/.test(token)
  const value = exact ? BigInt(token) : 0n
  if (value < 1n || value > MAX_TOKEN) throw invalidOption('token', `must be a whole number from 1 to ${MAX_TOKEN}, got ${String(token).slice(0, 40)}`)
  return value
}

function stale(resource: string, token: bigint): LedgerError {
  return new LedgerError('STALE_FENCE', `${resource} has been written under a fence greater than ${token}; this writer is behind and nothing was changed`, { resource, token })
}

export const fence = {
  /**
   * The first statement of a transaction that writes to a protected resource: lets the token through if none greater
   * was there before, and keeps later ones out until the transaction ends. The same token may write again. The database
   * of the resource has the table `fenced_resources`; the ledger's own has it, docs/fencing.md gives it for others.
   * @param tx a transaction of the caller's: of Kysely, or a pg, mysql2 or node:sqlite connection with one open
   * @param table where it is not found by this name: with its schema, as in `jobs.fenced_resources`
   * @throws STALE_FENCE when the token is behind: then nothing was changed, and the caller must not write
   */
  async guard(tx: CallerConnection, resource: string, token: FenceToken, table: string = FENCED_RESOURCES): Promise<void> {
    checkKey('resource', resource)
    const value = tokenOf(token)
    const { engine, db } = await borrow(tx)
    if (!(await guardFence(engine, db, sql.table(table), resource, value))) throw stale(resource, value)
  },
}

export class Fences {
  readonly #store: Store
  readonly #patienceMs: number

  /** Use ledger.fences. */
  constructor(store: Store, patienceMs: number) {
    this.#store = store
    this.#patienceMs = patienceMs
  }

  /** What fence.guard does, in the ledger's database and in a transaction of its own. @throws STALE_FENCE */
  async check(resource: string, token: FenceToken): Promise<void> {
    checkKey('resource', resource)
    const value = tokenOf(token)
    const passed = await settle(this.#store, this.#patienceMs, () => this.#store.transaction((tx) => this.#store.guardFence(tx, resource, value)))
    if (!passed) throw stale(resource, value)
  }

  /**
   * For after a restored backup, and a failover that lost its tail: raises every counter by `by`, and what a scope that
   * is not known (any more) begins with to above them all. @returns what new scopes begin above
   */
  async bump(by: FenceToken = 1_000_000): Promise<bigint> {
    return settle(this.#store, this.#patienceMs, () => bumpFences(this.#store, tokenOf(by)))
  }
}

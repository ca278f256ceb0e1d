/** A ledger whose process kills itself (SIGKILL) at the nth point: after a statement, or where the job says so. */
import { Ledger } from '../../src/runtime/ledger.ts'
import type { LedgerOptions } from '../../src/runtime/ledger-options.ts'
import { openStore } from '../../src/runtime/open-store.ts'
import { InlinePacemaker } from '../../src/runtime/pacemaker.ts'

export interface DyingLedger {
  readonly ledger: Ledger
  /** A point of the job's own, such as the answer of a service. */
  point(): void
}

/** @param dieAt 1 for the first point; 0 for never */
export async function openDyingLedger(url: string, dieAt: number, options: LedgerOptions = {}): Promise<DyingLedger> {
  let points = 0
  const point = () => {
    if (++points === dieAt) process.kill(process.pid, 'SIGKILL')
  }
  const store = await openStore(url, { log: point })
  return { ledger: new Ledger(store, new InlinePacemaker(async () => ({ ...store, close: async () => {} })), 10_000, options), point }
}

/** A host whose clock is off: it claims `task:key` and leaves it, reaps once, and says what its clock shows and whom it reaped. */
const [url = '', task = '', key = '', shiftMs = ''] = process.argv.slice(2)

const RealDate = Date
const shifted = () => RealDate.now() + Number(shiftMs)
globalThis.Date = class extends RealDate {
  constructor(...args: unknown[]) {
    super(...((args.length === 0 ? [shifted()] : args) as [number]))
  }
  static override now(): number {
    return shifted()
  }
} as DateConstructor

const { openLedger } = await import('../../src/runtime/ledger.ts')
const ledger = await openLedger(url)
const claim = await ledger.claim({ task, key })
const reaped = await ledger.reap()
process.send!({ reaped: reaped.map(({ run }) => run.taskKey), status: claim.status, clock: new Date().getTime() })
await ledger.close()
process.disconnect()

/** One of many that want the same effects: node fixture-effect.ts DATABASE FILE KEYS. Notes begin and end of every call in FILE. */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLedgerError, openLedger } from '../../src/index.ts'

const [database = '', file = '', keys = ''] = process.argv.slice(2)
const ledger = await openLedger(database, { heartbeats: 'loop' })
const claim = await ledger.claim({ task: 'racer', overlap: 'allow' })
if (claim.status !== 'claimed') throw new Error(claim.status)
process.stdout.write('ready\n')
await new Promise((resolve) => process.stdin.once('data', resolve))
for (const key of keys.split(',')) {
  const perform = async () => {
    appendFileSync(file, `${key} begin\n`)
    await sleep(5)
    appendFileSync(file, `${key} end\n`)
    return process.pid
  }
  await claim.effect('race', perform, { key, onDoubt: 'repeat' }).catch((error: unknown) => {
    if (!isLedgerError(error) || error.code !== 'EFFECT_HELD') throw error
  })
}
await claim.complete()
await ledger.close()
process.exit(0)

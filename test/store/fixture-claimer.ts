/** `node fixture-claimer.ts URL TASK WINDOWS CLAIMERS`: claims the windows 1…WINDOWS of a task, each by CLAIMERS at once, and prints how often it won which. */
import { instance, nobodyDied, request } from '../support/ledgers.ts'
import { openStore } from '../../src/runtime/open-store.ts'
import { claim } from '../../src/store/claim.ts'
import { complete } from '../../src/store/close.ts'

const [url = '', task = '', windows = '', claimers = ''] = process.argv.slice(2)
const store = await openStore(url, { poolMax: 4 })
const won: number[] = []

for (let window = 1; window <= Number(windows); window++) {
  const launches = Array.from({ length: Number(claimers) }, async () => {
    const outcome = await claim(store, request(task, String(window), { concurrencyKey: null, instance: instance({ pid: process.pid }) }), nobodyDied)
    if (outcome.status !== 'claimed') return
    won.push(window)
    await complete(store, outcome, {})
  })
  await Promise.all(launches)
}
await store.close()
process.stdout.write(JSON.stringify(won))

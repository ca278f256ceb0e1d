/** `node fixture-reaper.ts URL`: says `ready`, reaps again and again until a word comes on stdin, and prints how often it looked and what it closed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger } from '../../src/runtime/ledger.ts'

const ledger = await openLedger(process.argv[2]!)
let enough = false
for (const end of ['data', 'end']) process.stdin.once(end, () => (enough = true))
process.stdout.write('ready\n')
let [passes, reaped] = [0, 0]
while (!enough) {
  reaped += (await ledger.reap()).length
  passes++
  await sleep(50)
}
await ledger.close()
process.stdin.destroy()
process.stdout.write(`${JSON.stringify({ passes, reaped })}\n`)

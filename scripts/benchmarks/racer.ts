/** One of the processes of race.ts: claims the key of a round as soon as it is told to, and tells how that ended. */
import { openLedger, type Claim } from '../../src/index.ts'
import type { Lap } from './race.ts'

const ledger = await openLedger(process.argv[2]!, { heartbeats: 'loop', connectTimeout: '60s' }) // they start at once, on a few cores
/** Held until the next round, so that it is still processing when the last racer comes. */
let held: Claim | null = null

process.on('message', (word: number | 'end') => void (word === 'end' ? end() : run(word).then((lap) => process.send!(lap))))
process.send!('ready')

async function run(round: number): Promise<Lap> {
  try {
    await held?.complete()
    held = null
    const outcome = await ledger.claim({ task: `round-${round}`, key: 'prize' })
    if (outcome.status !== 'claimed') return { round, outcome: 'lost', told: outcome.status }
    held = outcome
    return { round, outcome: 'claimed', told: outcome.taskKey }
  } catch (error) {
    return { round, outcome: 'error', told: String(error) }
  }
}

async function end(): Promise<void> {
  await held?.complete()
  await ledger.close()
  process.disconnect()
}

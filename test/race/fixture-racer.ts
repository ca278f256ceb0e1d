/** One process of a race: it has its ledger open before it is told what to claim, and when. Ends when nobody speaks to it any more. */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger, type Claim, type Conflict, type Ledger } from '../../src/index.ts'

export type Order =
  | { readonly do: 'open'; readonly url: string }
  /** Claims `task:key` at this instant of the clock. */
  | { readonly do: 'claim'; readonly task: string; readonly key: string; readonly at: number }
  /** Closes what was claimed, if anything was. */
  | { readonly do: 'complete' }
  /** Claims each of the keys 1…`windows`, from `at` on, and completes what it gets; every execution is a line in the file. */
  | { readonly do: 'all'; readonly task: string; readonly windows: number; readonly at: number; readonly file: string }
  | { readonly do: 'close' }

export type Answer =
  | { readonly pid: number; readonly instance: string; readonly claimed: boolean; readonly conflict: Pick<Conflict, 'reason' | 'holder'> | null; readonly wins: number }
  | { readonly problem: string }

let ledger: Ledger
let claim: Claim | null = null

async function obey(order: Order): Promise<Answer> {
  let outcome: Claim | Conflict | null = null
  let wins = 0
  switch (order.do) {
    case 'open':
      ledger = await openLedger(order.url, { heartbeats: 'loop', connectTimeout: '60s' })
      break
    case 'claim':
      await until(order.at)
      outcome = await claimed(order.task, order.key)
      claim = outcome.status === 'claimed' ? outcome : null
      break
    case 'complete':
      await claim?.complete()
      break
    case 'all':
      await until(order.at)
      wins = await all(order)
      break
    case 'close':
      await ledger.close()
  }
  const conflict = outcome?.status === 'conflict' ? { reason: outcome.reason, holder: outcome.holder } : null
  return { pid: process.pid, instance: ledger.instance.id, claimed: outcome?.status === 'claimed', conflict, wins }
}

async function claimed(task: string, key: string): Promise<Claim | Conflict> {
  const outcome = await ledger.claim({ task, key, overlap: 'allow' })
  if (outcome.status === 'queued') throw new Error('queued')
  return outcome
}

async function all({ task, windows, file }: Extract<Order, { do: 'all' }>): Promise<number> {
  let wins = 0
  for (let window = 1; window <= windows; window++) {
    const outcome = await claimed(task, String(window))
    if (outcome.status !== 'claimed') continue
    wins++
    appendFileSync(file, `${window}\n`)
    await outcome.complete()
  }
  return wins
}

async function until(at: number): Promise<void> {
  await sleep(Math.max(0, at - Date.now()))
}

/** Loads all that a race will need, so that its compiled form is there for the others. */
async function warmUp(): Promise<void> {
  for (const url of ['sqlite::memory:', 'postgres://127.0.0.1:1/nobody', 'mysql://127.0.0.1:1/nobody']) {
    await openLedger(url, { heartbeats: 'loop', connectTimeout: 0 }).then((opened) => opened.close(), () => {}) // Nobody listens there.
  }
}

if (process.send === undefined) await warmUp()
process.on('message', (order: Order) => {
  void obey(order)
    .catch((error: unknown): Answer => ({ problem: error instanceof Error ? (error.stack ?? error.message) : String(error) }))
    .then((answer) => process.send!(answer))
})
process.on('disconnect', () => process.exit())

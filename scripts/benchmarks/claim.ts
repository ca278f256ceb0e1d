/** Claims of new windows a second, against bare single-row INSERTs of the same columns into a table like task_runs. */
import { randomUUID } from 'node:crypto'
import { every, openLedger, type Claim, type Ledger } from '../../src/index.ts'
import { median, shown } from './median.ts'
import { places, type Driver, type Place } from './places.ts'

const ROUNDS = 15
const BATCH = 200
const WARM_UP = 2
const WINDOW = every('1m')
const FIRST_WINDOW = Date.UTC(2030, 0, 1)

console.log(`claims of new windows against bare INSERTs: medians of ${ROUNDS} interleaved batches of ${BATCH}, one commit each`)
for (const place of await places()) {
  for (const inFlight of [1, 8]) {
    const { claims, inserts } = await measure(place, inFlight)
    const [perSecond, bare] = [1000 / median(claims), 1000 / median(inserts)]
    console.log(`  ${place.name.padEnd(10)}${inFlight} in flight: ${shown(perSecond).padStart(6)} claims/s, ${shown(bare).padStart(6)} inserts/s, ratio ${shown(median(inserts) / median(claims))}`)
  }
}

/** Milliseconds for one claim and for one INSERT, batch by batch in turn. */
async function measure(place: Place, inFlight: number): Promise<{ claims: number[]; inserts: number[] }> {
  const ledger = await openLedger(place.url, { heartbeats: 'loop' })
  const driver = place.driver()
  const insert = await bareInsert(driver, `bare_${inFlight}`)
  const [claims, inserts]: [number[], number[]] = [[], []]
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    const claimed = await claimBatch(ledger, inFlight, round)
    const inserted = await timed(inFlight, (n) => insert(`${round}:${n}`))
    if (round < 0) continue
    claims.push(claimed)
    inserts.push(inserted)
  }
  await driver.close()
  await ledger.close()
  return { claims, inserts }
}

/** One window of each of many tasks, as at the top of an hour; only the claims are timed, then the runs are completed. */
async function claimBatch(ledger: Ledger, inFlight: number, round: number): Promise<number> {
  const at = new Date(FIRST_WINDOW + (round + WARM_UP) * 60_000)
  const held: Claim[] = []
  const ms = await timed(inFlight, async (n) => {
    const claim = await ledger.claim({ task: `bench-${inFlight}-${n}`, window: WINDOW, at })
    if (claim.status !== 'claimed') throw new Error(`window ${at.toISOString()} of task ${n}: ${claim.status}`)
    held.push(claim)
  })
  for (const claim of held) await claim.complete()
  return ms
}

/** The one statement that a claim cannot do without: a row of the columns that it writes. */
async function bareInsert(driver: Driver, table: string): Promise<(key: string) => Promise<unknown>> {
  await driver.copyTable(table)
  const instance = randomUUID()
  const rowOf = (key: string) => ({
    task_key: key, task_name: key, window_zone: 'UTC', status: 'processing', concurrency_key: key, active_key: key, attempt: 1, max_attempts: 3, fence: 1,
    instance_id: instance, host: 'bench', pid: process.pid, process_identity: `${instance}/4026531836/${process.pid}:123456`, launcher: 'bench', lease_seconds: 60,
  })
  const instants = ['window_start', 'window_end', 'available_at', 'created_at', 'started_at', 'heartbeat_at']
  const columns = Object.keys(rowOf(''))
  const sql = `insert into ${table} (${[...columns, ...instants].join(', ')})
    values (${[...columns.map((_, index) => driver.parameter(index + 1)), ...instants.map(() => 'current_timestamp')].join(', ')})`
  return async (key) => driver.query(sql, Object.values(rowOf(key)))
}

/** Milliseconds a piece of a whole batch, `inFlight` of them at a time. */
async function timed(inFlight: number, work: (n: number) => Promise<unknown>): Promise<number> {
  let next = 0
  const lane = async () => {
    while (next < BATCH) await work(next++)
  }
  const before = performance.now()
  await Promise.all(Array.from({ length: inFlight }, lane))
  return (performance.now() - before) / BATCH
}

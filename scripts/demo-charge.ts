/** The demonstration behind scripts/demo-charge: a payment service, a billing job, and everything that goes wrong with it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { wasCharged } from '../examples/payments/client.ts'
import { startPaymentService, type PaymentService } from '../examples/payments/service.ts'
import { centsOf, CUSTOMERS } from '../examples/payments/tariff.ts'
import { migrate, openLedger, type Ledger } from '../src/index.ts'

const JOB = join(import.meta.dirname, '../examples/payments/billing-job.ts')
const AT_ONCE = 4
/** A window that needs more starts than this is not a demonstration of anything. */
const MAX_STARTS = 40
const LEASE_MS = 2000

const { values } = parseArgs({ options: { windows: { type: 'string', default: '200' }, seed: { type: 'string', default: '1' } } })
const count = Number(values.windows)
const random = numbersFrom(Number(values.seed))

const tally = { started: 0, killed: 0, paused: 0, twice: 0, refused: 0, leaseLost: 0, inDoubt: 0, resolvedDone: 0, resolvedNotDone: 0 }

const folder = await mkdtemp(join(tmpdir(), 'runledger-demo-'))
const url = process.env['RUNLEDGER_DB'] ?? `sqlite:${join(folder, 'ledger.db')}`
const statements = new DatabaseSync(join(folder, 'statements.db'), { timeout: 10_000 })
try {
  await migrate(url)
  statements.exec(`pragma journal_mode = wal;
    create table statements (period text primary key, cents integer not null) strict;
    create table fenced_resources (resource text primary key, token integer not null, stale integer default 0 not null, constraint fenced_resources_stale check (stale = 0)) strict`)
  const service = await startPaymentService(join(folder, 'payments.db'), 25)
  const ledger = await openLedger(url)
  // A name of its own for each demonstration on one database.
  const windows = Array.from({ length: count }, (_, n) => `${Date.now().toString(36)}-${n + 1}`)
  console.log(`Billing ${CUSTOMERS.length} customers in each of ${count} windows, on ${ledger.place}.`)
  await inTurns(windows, (window) => billWindow(ledger, service, window))
  process.exitCode = (await settleAccounts(ledger, service, windows)) ? 0 : 1
  await ledger.close()
  await service.close()
} finally {
  statements.close()
  await rm(folder, { recursive: true, force: true })
}

/** Starts the job until its run is completed, with whatever befalls it, and plays the operator for effects in doubt. */
async function billWindow(ledger: Ledger, service: PaymentService, window: string): Promise<void> {
  for (let start = 0; start < MAX_STARTS; start++) {
    const fate = start > 2 ? 'calm' : fateOf(random())
    if (fate === 'kill') await killed(service, window)
    else if (fate === 'pause') await paused(service, window)
    else if (fate === 'twice') await twice(service, window)
    else await startJob(service, window).end
    await resolveDoubts(ledger, service, `billing:${window}`)
    if ((await ledger.show(`billing:${window}`).catch(() => null))?.run?.status === 'completed') return
  }
  throw new Error(`${window} was not completed in ${MAX_STARTS} starts`)
}

function fateOf(number: number): 'kill' | 'pause' | 'twice' | 'calm' {
  if (number < 0.4) return 'kill'
  return number < 0.5 ? 'pause' : number < 0.75 ? 'twice' : 'calm'
}

async function killed(service: PaymentService, window: string): Promise<void> {
  const job = startJob(service, window)
  await job.begun
  await sleep(random() * 500)
  if (job.process.kill('SIGKILL')) tally.killed++
  await job.end
}

/** Beyond its lease: somebody else does the work meanwhile; then it wakes up and goes on where it was. */
async function paused(service: PaymentService, window: string): Promise<void> {
  const job = startJob(service, window)
  await job.begun
  await sleep(random() * 400)
  if (!job.process.kill('SIGSTOP')) return job.end
  tally.paused++
  await sleep(LEASE_MS * 1.2)
  const successor = startJob(service, window)
  // Not for ever: if the paused one holds the lock of the statements' file, nobody gets on until it wakes up.
  await Promise.race([successor.end, sleep(LEASE_MS * 2)])
  job.process.kill('SIGCONT')
  await Promise.all([successor.end, job.end])
}

async function twice(service: PaymentService, window: string): Promise<void> {
  tally.twice++
  await Promise.all([startJob(service, window).end, startJob(service, window).end])
}

function startJob(service: PaymentService, window: string) {
  tally.started++
  const env = { ...process.env, RUNLEDGER_DB: url, PAYMENTS_URL: service.url, STATEMENTS: join(folder, 'statements.db') }
  const job = spawn(process.execPath, [JOB, window], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const begun = Promise.race([once(job.stdout, 'data'), once(job, 'close')])
  let said = ''
  job.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const ended = async () => {
    const [code, signal] = (await once(job, 'close')) as [number | null, NodeJS.Signals | null]
    if (code === 77) tally.refused++
    else if (code === 75) tally.leaseLost++
    else if (signal !== 'SIGKILL' && ![0, 73, 76].includes(code!)) throw new Error(`the job ended with ${code ?? signal}: ${said}`)
  }
  return { process: job, begun, end: ended() }
}

/** What an operator does with the list of `runledger effects --in-doubt`: asks the other side, and says so. */
async function resolveDoubts(ledger: Ledger, service: PaymentService, taskKey: string): Promise<void> {
  for (const { effectKey } of await ledger.effects.list({ inDoubt: true, taskKey })) {
    tally.inDoubt++
    const answer = await wasCharged(service.url, effectKey)
    if (answer?.done) tally.resolvedDone++
    else tally.resolvedNotDone++
    await ledger.effects.resolve(effectKey, answer?.done ? { verdict: 'done', by: 'the demonstration', result: answer.result } : { verdict: 'not_done', by: 'the demonstration' })
  }
}

async function settleAccounts(ledger: Ledger, service: PaymentService, windows: readonly string[]): Promise<boolean> {
  const due = windows.flatMap((window) => CUSTOMERS.map((customer) => centsOf(window, customer)))
  const account = (await (await fetch(`${service.url}/account`)).json()) as { charges: number; cents: number }
  const recorded = (await Promise.all(windows.map((window) => ledger.effects.list({ taskKey: `billing:${window}` })))).flat().filter(({ status }) => status === 'done')
  const recordedCents = recorded.reduce((sum, { result }) => sum + (JSON.parse(result ?? '{"cents":0}') as { cents: number }).cents, 0)
  const stated = statements.prepare('select count(*) as periods, coalesce(sum(cents), 0) as cents from statements').get() as { periods: number; cents: number }
  const dueCents = due.reduce((sum, cents) => sum + cents, 0)
  const lines = [
    ['', 'number', 'cents'],
    ['due', due.length, dueCents],
    ['charged by the payment service', account.charges, account.cents],
    ['recorded as done in the ledger', recorded.length, recordedCents],
    ['difference', account.charges - recorded.length, account.cents - recordedCents],
    [`statements (${stated.periods} windows), against what is due`, '', stated.cents - dueCents],
  ]
  console.log(`
The job was started ${tally.started} times: killed ${tally.killed} times, paused beyond its lease and resumed ${tally.paused} times, started twice at once ${tally.twice} times.
Stale writers refused by the fence: ${tally.refused}; stopped because the lease was lost: ${tally.leaseLost}.
Effects in doubt, listed and resolved: ${tally.inDoubt} (${tally.resolvedDone} had happened, ${tally.resolvedNotDone} had not).
`)
  for (const [what, number, cents] of lines) console.log(`${String(what).padEnd(52)}${String(number).padStart(8)}${String(cents).padStart(12)}`)
  return account.charges === due.length && account.cents === dueCents && recorded.length === due.length && recordedCents === dueCents && stated.cents === dueCents
}

/** All of them, a few at a time. */
async function inTurns<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items]
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

/** The same fates for the same seed; what they meet still depends on the machine. */
function numbersFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

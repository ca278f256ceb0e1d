/** kill -9 at each statement boundary of effect, transaction and completion, against a real payment service. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { wasCharged } from '../../examples/payments/client.ts'
import { startPaymentService, type Charge, type PaymentService } from '../../examples/payments/service.ts'
import { migrate, openLedger, type Ledger } from '../../src/index.ts'
import { bundled } from '../support/bundled.ts'
import { eachDatabase } from '../support/databases.ts'
import { billOne } from './bill-one.ts'
import { TOTAL_CENTS, WINDOWS } from './thousand.ts'
import { violations } from './violations.ts'

const programs = bundled(import.meta.dirname, 'fixture-charge.ts', 'fixture-thousand.ts')

eachDatabase('kill -9', (db) => {
  let url = ''
  let folder = ''
  let service: PaymentService
  let ledger: Ledger

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'runledger-kill-'))
    url = await db.url()
    await migrate(url)
    await db.admin('create table bookings (label varchar(100) primary key, charge integer not null, cents integer not null)')
    service = await startPaymentService(join(folder, 'payments.db'))
    ledger = await openLedger(url)
  })
  after(async () => {
    await ledger.close()
    await service.close()
    await rm(folder, { recursive: true, force: true })
  })

  const account = async () => (await (await fetch(`${service.url}/account`)).json()) as { charges: number; cents: number }
  const chargeOf = (key: string) => wasCharged(service.url, key)

  it('at each boundary: done and recorded, or in doubt and listed; then resolved, charged once and booked once', async () => {
    let survived = false
    let doubts = 0
    // Several at a time, for the sake of time: each is a window of its own. In one file they would wait, and a statement that is tried again is one more point.
    const together = db.name === 'sqlite' ? 1 : 3
    for (let from = 1; !survived; from += together) {
      const killed = await Promise.all(Array.from({ length: together }, (_, nth) => from + nth).map((dieAt) => runToDeath('fixture-charge.ts', service.url, `at-${dieAt}`, String(dieAt))))
      for (const [index, wasKilled] of killed.entries()) {
        if (await findsItsEnd(`at-${from + index}`)) doubts++
        survived ||= !wasKilled
      }
    }
    assert.ok(doubts >= 2, `${doubts} kills left the effect in doubt: before the call, and after its answer`)
    assert.deepEqual(await violations(db, url), [])
  })

  it('a thousand charges with a kill at every few hundred points: the sum is right to the cent on both sides', async () => {
    const before = await account()
    for (let round = 0; ; round++) {
      assert.ok(round < 30, 'it goes forward')
      // Any numbers would do; these differ from round to round and are the same in every test run.
      if (!(await runToDeath('fixture-thousand.ts', service.url, String(400 + ((round * 197) % 600))))) break
    }
    const now = await account()
    assert.deepEqual([now.charges - before.charges, now.cents - before.cents], [1000, TOTAL_CENTS])
    const booked = await db.admin(`select sum(cents) as cents from bookings where label in (${WINDOWS.map((window) => `'${window}'`).join(', ')})`)
    assert.equal(Number(booked[0]!['cents']), TOTAL_CENTS)
    assert.deepEqual(await ledger.effects.list({ inDoubt: true }), [])
  })

  /** Judges what a kill left, resolves it as an operator would, and lets the next attempt finish. @returns whether it was in doubt */
  async function findsItsEnd(label: string): Promise<boolean> {
    const key = `billing:${label}#charge`
    const [record] = await ledger.effects.list({ taskKey: `billing:${label}` })
    const doubtful = (await ledger.effects.list({ inDoubt: true, taskKey: `billing:${label}` })).length === 1 || (record?.status === 'started' && record.live)
    const charged = await chargeOf(key)
    if (record?.status === 'done') assert.deepEqual(charged, { done: true, result: JSON.parse(record.result!) as Charge })
    else assert.ok(doubtful || !charged?.done, `${label} was charged, and is neither recorded nor in doubt`)
    if (doubtful) await ledger.effects.resolve(key, charged?.done ? { verdict: 'done', by: 'test', result: charged.result } : { verdict: 'not_done', by: 'test' })
    if ((await statusOf(label)) !== 'completed') await billOne(ledger, service.url, label)
    assert.equal(await statusOf(label), 'completed')
    assert.deepEqual(await db.admin(`select cents from bookings where label = '${label}'`), [{ cents: 995 }])
    assert.equal((await chargeOf(key))?.done, true)
    return doubtful
  }

  async function statusOf(label: string): Promise<unknown> {
    return (await db.admin(`select status from task_runs where task_key = 'billing:${label}'`))[0]?.['status']
  }

  /** @returns whether it was killed; fails for any other end than that and success */
  async function runToDeath(fixture: string, ...args: string[]): Promise<boolean> {
    const job = programs.spawn(fixture, [url, ...args], ['ignore', 'ignore', 'pipe'])
    let said = ''
    job.stderr!.on('data', (chunk: Buffer) => (said += chunk.toString()))
    const [code, signal] = (await once(job, 'close')) as [number | null, NodeJS.Signals | null]
    assert.ok(code === 0 || signal === 'SIGKILL', `${fixture} ${args.join(' ')} ended with ${code ?? signal}: ${said}`)
    return signal === 'SIGKILL'
  }
}, { atOnce: true })

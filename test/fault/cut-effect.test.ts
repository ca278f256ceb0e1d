/** The connection dies at each statement of an effect and of a transaction, before it is carried out and after: nothing is done twice, or by half. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { sql } from 'kysely'
import { isLedgerError, openLedger, type Claim, type Ledger } from '../../src/index.ts'
import { eachServerLedger } from '../support/each-server.ts'
import { faultProxy, NEVER_ARRIVES, REPLY_LOST, type Fault, type FaultProxy } from '../support/fault-proxy.ts'

eachServerLedger('cut connection', (bench, db) => {
  let proxy: FaultProxy
  let ours: Ledger
  before(async () => {
    proxy = await faultProxy(bench.url)
    ours = await openLedger(proxy.url, { heartbeats: 'loop', connectTimeout: '5s' })
    await db.admin('create table bookings (label varchar(100) primary key)', bench.url)
  })
  after(async () => {
    await ours.close()
    await proxy.close()
  })

  it('an effect is performed once, and recorded, wherever its connection dies', async () => {
    await atEachStatement(async (claim) => {
      let calls = 0
      await claim.effect('charge', () => ++calls)
      assert.equal(calls, 1)
      assert.equal((await ours.effects.read(`${claim.taskKey}#charge`)).status, 'done')
    })
  })

  it('an effect in doubt is taken over by one call, wherever its connection dies', async () => {
    await atEachStatement(
      async (claim) => {
        let calls = 0
        await claim.effect('charge', () => ++calls, { onDoubt: 'repeat' })
        assert.equal(calls, 1)
        assert.deepEqual((await ours.effects.read(`${claim.taskKey}#charge`)).calls, 2)
      },
      (claim) => claim.effect('charge', () => Promise.reject(new Error('who knows'))).catch(() => {}),
    )
  })

  it('the data and the completion are there once, and together, wherever their connection dies; a lost answer to COMMIT is read back', async () => {
    const statements = await atEachStatement(async (claim) => {
      const booked = await claim
        .transaction(async (tx) => {
          await sql`insert into bookings (label) values (${claim.taskKey})`.execute(tx)
          return 'booked'
        })
        .catch(unlessCutAtWork)
      if (booked === 'not written') await claim.fail('its connection died')
      else assert.equal(booked, 'booked')
      const rows = await db.admin(`select label from bookings where label = '${claim.taskKey}'`, bench.url)
      const [run] = await db.admin(`select status from task_runs where task_key = '${claim.taskKey}'`, bench.url)
      assert.deepEqual([rows.length, run!['status']], booked === 'booked' ? [1, 'completed'] : [0, 'failed'])
    })
    assert.match(statements.at(-1)!, /commit/i)
  })

  /** Carries it out with each fault at each statement, and once without. @returns the statements of the sound one */
  async function atEachStatement(act: (claim: Claim) => Promise<void>, prepare: (claim: Claim) => Promise<void> = async () => {}): Promise<string[]> {
    const statements: string[] = []
    await carryOut((text) => void statements.push(text), act, prepare)
    for (const number of statements.keys()) {
      for (const fault of [NEVER_ARRIVES, REPLY_LOST]) {
        let at = 0
        await carryOut(() => (at++ === number ? fault : undefined), act, prepare)
      }
    }
    return statements
  }

  async function carryOut(onStatement: (text: string) => Fault | undefined, act: (claim: Claim) => Promise<void>, prepare: (claim: Claim) => Promise<void>): Promise<void> {
    const claim = await ours.claim({ task: bench.task(), key: 'a' })
    assert.ok(claim.status === 'claimed')
    await prepare(claim)
    proxy.onStatement = onStatement
    await act(claim).finally(() => (proxy.onStatement = () => undefined))
  }
}, { atOnce: true })

/** An error at one of the caller's own statements is the caller's to judge; no COMMIT was sent. */
function unlessCutAtWork(error: unknown): 'not written' {
  if (isLedgerError(error)) throw error
  return 'not written'
}

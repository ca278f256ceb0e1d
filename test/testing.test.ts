/** `runledger/testing`: what a user's own suite stands on, in memory and on each database. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { openTestLedger } from '../src/testing.ts'
import { eachDatabase } from './support/databases.ts'

interface Tasks {
  send_invoice: { payload: { order: number } }
  remind: { payload: { order: number; late: boolean } }
}

it('in memory: what the code under test enqueued is asserted, drained and seen to be done, without another process', async () => {
  const ledger = await openTestLedger<Tasks>()
  await ledger.enqueue('send_invoice', { key: 'order-42', payload: { order: 42 } })
  await ledger.assertEnqueued('send_invoice', { key: 'order-42', payload: { order: 42 } })
  await ledger.assertNotEnqueued('remind')
  await assert.rejects(ledger.assertEnqueued('send_invoice', { payload: { order: 43 } }), { name: 'AssertionError', message: /"order":42/ })

  const { completed, failed } = await ledger.drain({ handlers: { send_invoice: async ({ order }) => void (await ledger.enqueue('remind', { payload: { order, late: false }, availableAt: '1d' })) } })

  assert.deepEqual([completed, failed], [['send_invoice:order-42'], []])
  await ledger.assertEnqueued('remind', { payload: { order: 42 } })
  await ledger.close()
})

eachDatabase('a throwaway ledger', (db) => {
  it('has a clock to be moved: delays and backoffs are over when the test says so', async () => {
    const url = await db.url()
    const ledger = await openTestLedger<Tasks>({ url })
    await ledger.enqueue('remind', { key: 'a', payload: { order: 1, late: true }, availableAt: '1d', maxAttempts: 2, backoff: '1h' })
    let tries = 0
    const handlers = { remind: () => {
      if (++tries === 1) throw new Error('not today')
    } }
    assert.deepEqual(await ledger.drain({ handlers }), { completed: [], failed: [] })

    ledger.advance('1d')
    const first = await ledger.drain({ handlers })
    const again = await ledger.drain({ handlers })
    ledger.advance('2h')
    const last = await ledger.drain({ handlers })

    assert.deepEqual([first.failed.length, again.completed.length + again.failed.length, last.completed], [1, 0, ['remind:a']])
    await ledger.close()
  })

  it('runs all of a concurrency key, one after the other, and leaves nothing of itself in the database', async () => {
    const url = await db.url()
    const ledger = await openTestLedger<Tasks>({ url })
    await ledger.enqueueMany('send_invoice', Array.from({ length: 5 }, (_, order) => ({ payload: { order }, concurrencyKey: 'customer-7', queue: 'mail' })))
    const order: number[] = []

    await ledger.drain({ handlers: { send_invoice: ({ order: one }) => void order.push(one) } })
    assert.deepEqual(order, [0, 1, 2, 3, 4])
    await ledger.close()

    const tables = db.name === 'sqlite' ? `select name from sqlite_master where name like 't%\\_%' escape '\\'` : `select table_name from information_schema.tables where table_schema = ${db.name === 'postgres' ? `'public'` : 'database()'}`
    assert.deepEqual(await db.admin(tables, url), [])
  })
})

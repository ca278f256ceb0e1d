/** What a program hears when its handler fails after the run was lost. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isLedgerError, migrate, openLedger } from '../../src/index.ts'
import { eachDatabase } from '../support/databases.ts'

eachDatabase('a handler that fails after its lease was lost', (db) => {
  it('is told LEASE_LOST, with its own error as the cause', async () => {
    const url = await db.url()
    await migrate(url)
    const ledger = await openLedger(url, { heartbeats: 'loop' })
    const mine = new Error('the report is empty')
    const lost = ledger.run({ task: 'report', key: 'today' }, async (claim) => {
      await db.admin(`update task_runs set fence = fence + 1 where task_key = '${claim.taskKey}'`)
      throw mine
    })
    await assert.rejects(lost, (error) => isLedgerError(error) && error.code === 'LEASE_LOST' && error.cause === mine)
    await ledger.close()
  })
})

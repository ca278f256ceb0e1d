/** Case 29: pruners and reapers side by side, in processes of their own, take each row once and never fall over each other. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startFixture } from '../support/fixture-process.ts'
import { eachLedger } from '../support/ledgers.ts'
import { oldWindows } from '../support/old-runs.ts'

const ROWS = Number(process.env['RUNLEDGER_PRUNE_ROWS'] ?? 2000)
const EXPIRED = 200

eachLedger('pruners and reapers', (bench) => {
  it('case 29: three of each over thousands of rows, and no uncaught deadlock', async (t) => {
    const task = bench.task()
    const { store } = bench
    await oldWindows(store, task, 0, ROWS)
    await oldWindows(store, task, ROWS + 1, ROWS + EXPIRED, { status: 'processing', finished_at: null })
    const keepers = ['prune', 'reap', 'prune', 'reap', 'prune', 'reap'].map((what) => ({ what, process: startFixture(t, 'race/fixture-keeper.ts', [bench.url, what, task]) }))
    await Promise.all(keepers.map(({ process }) => process.says('ready')))
    for (const { process } of keepers) process.send('go')

    const took = { prune: 0, reap: 0 }
    for (const { what, process } of keepers) took[what as 'prune' | 'reap'] += Number((await process.says('took'))['took'])

    assert.deepEqual(took, { prune: ROWS, reap: EXPIRED })
    assert.equal((await bench.recorded(task)).runs.length, EXPIRED + 1)
  })
})

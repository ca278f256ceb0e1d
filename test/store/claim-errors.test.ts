/** Only a violation of our own two keys means that somebody else has the run; every other error is an error, and leaves nothing behind. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isLedgerError } from '../../src/model/errors.ts'
import { claim } from '../../src/store/claim.ts'
import { complete } from '../../src/store/close.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { duplicateKey, interrupted } from '../support/failing-store.ts'
import { eachLedger, instance, nobodyDied, request } from '../support/ledgers.ts'

eachLedger('errors of a claim', (bench) => {
  it('case 54: a violation leaves no transaction poisoned: the same connection goes on to work', async () => {
    const task = bench.task()
    const store = await bench.openStore({ poolMax: 1 })
    const held = await claim(store, request(task, 'one'), nobodyDied)
    await queueRun(store, request(task, 'queued'))

    const refused = [await claim(store, request(task, 'one'), nobodyDied), await claim(store, request(task, 'two'), nobodyDied), await claim(store, request(task, 'queued'), nobodyDied), await queueRun(store, request(task, 'one'))]

    assert.deepEqual(refused.map((outcome) => (typeof outcome === 'object' && outcome.status === 'conflict' ? outcome.reason : outcome)), ['held', 'overlap', 'overlap', false])
    assert.equal(await complete(store, held as Extract<typeof held, { fence: bigint }>, {}), true)
    assert.equal((await claim(store, request(task, 'two'), nobodyDied)).status, 'claimed')
  })

  it('a row that is refused but never found is a bug, said loudly', async () => {
    const asked = request(bench.task())
    const store = interrupted(bench.store, (moment) => {
      if (moment === 'before insertFenced') throw duplicateKey()
    })

    await assert.rejects(claim(store, asked, nobodyDied), (error) => isLedgerError(error) && error.code === 'INTERNAL' && error.facts['taskKey'] === asked.taskKey)
  })

  it('a row that breaks a rule of the schema is an error and no conflict', async () => {
    const task = bench.task()

    await assert.rejects(claim(bench.store, request(task, 'one', { leaseSeconds: -1 }), nobodyDied), (error) => !isLedgerError(error) && bench.store.diagnose(error).kind === 'other')
    assert.deepEqual(await bench.recorded(task), { runs: [], attempts: [] })
  })

  it('case 55: a second unique index does not mean that somebody has the run, neither for a new key nor for a pending one', async () => {
    const task = bench.task()
    await bench.db.admin('delete from task_runs') // Rows that are there already would break it.
    await bench.db.admin('create unique index one_run_a_host on task_runs (host)')
    await bench.claim(request(task, 'one', { concurrencyKey: null, instance: instance({ host: 'only' }) }))
    await queueRun(bench.store, request(task, 'queued', { concurrencyKey: null }))
    const before = await bench.recorded(task)
    const isTheirs = (error: unknown) => !isLedgerError(error) && bench.store.diagnose(error).kind === 'duplicate'

    for (const label of ['two', 'queued']) await assert.rejects(claim(bench.store, request(task, label, { concurrencyKey: null, instance: instance({ host: 'only' }) }), nobodyDied), isTheirs)

    assert.deepEqual(await bench.recorded(task), before)
  })

  // The last of the suite: no run can be claimed in this database afterwards.
  it('case 55: a CHECK of somebody else does not mean that somebody has the run', async () => {
    const task = bench.task()
    await bench.db.admin('delete from task_runs') // Rows that are there already would break it.
    await bench.db.admin('alter table task_runs add column shift integer default 13 check (shift <> 13)')

    await assert.rejects(claim(bench.store, request(task), nobodyDied), (error) => !isLedgerError(error) && bench.store.diagnose(error).kind === 'other')
    assert.deepEqual(await bench.recorded(task), { runs: [], attempts: [] })
  })
})

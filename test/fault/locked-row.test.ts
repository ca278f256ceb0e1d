/** case 51: somebody's session holds the row of a stuck run. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { eachServerLedger, session } from '../support/each-server.ts'

eachServerLedger('locked row', (bench) => {
  it('case 51: the reaper passes over a row that another session has locked, and reaps the others at once', async (t) => {
    const ledger = await bench.open()
    const keys = ['a', 'b', 'c'].map((key) => ({ task: bench.task(), key }))
    for (const launch of keys) {
      await ledger.claim(launch)
      await bench.age(`${launch.task}:${launch.key}`)
    }
    const [first, second, third] = keys.map(({ task, key }) => `${task}:${key}`)
    const other = await session(bench.url)
    t.after(() => other.end())
    await other.query('begin')
    await other.query(`select task_key from task_runs where task_key = '${second}' for update`)

    const begun = performance.now()
    const reaped = await ledger.reap()
    const took = performance.now() - begun
    await other.query('rollback')
    const reapedLater = await ledger.reap()

    assert.deepEqual(reaped.map(({ run }) => run.taskKey), [first, third])
    assert.ok(took < 2_000, `it took ${took} ms`)
    assert.deepEqual(reapedLater.map(({ run }) => run.taskKey), [second])
  })
})

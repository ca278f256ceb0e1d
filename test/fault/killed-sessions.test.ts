/** case 56: sessions are ended by the server, as a restart or an administrator does, while a job runs. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { eachServerLedger, killSessions } from '../support/each-server.ts'
import { startFixture } from '../support/fixture-process.ts'

eachServerLedger('killed sessions', (bench, db) => {
  it('case 56: a process whose sessions are killed five times during its job completes it under the same fence', async (t) => {
    const task = bench.task()
    const job = startFixture(t, 'fault/fixture-job.ts', [bench.url, task, 'a', '20s'])
    const { claimed: fence } = await job.says('claimed')
    for (let killed = 0; killed < 5; ) {
      await job.says('renewed') // The heartbeats have a connection.
      if ((await killSessions(db, bench.url)) > 0) killed++
    }
    job.send('complete')

    assert.deepEqual(await job.says('completed'), { completed: fence })
    assert.deepEqual(await job.ended, [0, null])
    const row = await bench.row(`${task}:a`)
    assert.deepEqual([row['status'], row['attempt'], String(row['fence'])], ['completed', 1, fence])
    assert.deepEqual(await bench.outcomes(`${task}:a`), [])
  })
}, { atOnce: true })

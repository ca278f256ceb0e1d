/** What a task has to take up: pending runs whose time has come, oldest first, and those whose owner is gone. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { complete, fail, heartbeat } from '../../src/store/close.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { dueRuns } from '../../src/store/recover.ts'
import { interrupted } from '../support/failing-store.ts'
import { eachLedger, hourFrom, nobodyDied, request } from '../support/ledgers.ts'

eachLedger('due runs', (bench) => {
  const due = async (task: string, isDead = nobodyDied, limit = 100) => (await dueRuns(bench.store, task, isDead, limit)).map(({ taskKey }) => taskKey.slice(task.length + 1))
  const queue = (task: string, label: string, start?: string) => queueRun(bench.store, request(task, label, { window: start === undefined ? null : hourFrom(start) }))

  it('the oldest window comes first, whenever it was recorded', async () => {
    const task = bench.task()
    await queue(task, 'c', '2026-09-20T12:00:00Z')
    await queue(task, 'a', '2026-09-20T10:00:00Z')
    await queue(task, 'b', '2026-09-20T11:00:00Z')

    assert.deepEqual([await due(task), await due(task, nobodyDied, 2)], [['a', 'b', 'c'], ['a', 'b']])
  })

  it('runs without a window come in the order in which they are due, on every database on the same side of those with one', async () => {
    const task = bench.task()
    await queue(task, 'y')
    await queue(task, 'window', '2026-09-20T10:00:00Z')
    await queue(task, 'x')
    for (const [label, at] of [['y', '2026-09-20T09:00:00Z'], ['x', '2026-09-20T09:30:00Z']]) {
      await bench.store.db.updateTable('task_runs').set({ available_at: bench.store.instant(new Date(at!)) }).where('task_key', '=', `${task}:${label}`).execute()
    }

    assert.deepEqual(await due(task), ['window', 'y', 'x'])
  })

  it('what is not due, is over, is running, or is another task’s is not among them, and stays as it is', async () => {
    const [task, other] = [bench.task(), bench.task()]
    const any = { concurrencyKey: null }
    await queue(other, 'other')
    await fail(bench.store, await bench.claim(request(task, 'later', any)), 'error', {}, 600)
    await fail(bench.store, await bench.claim(request(task, 'failed', any)), 'error', {}, null)
    await complete(bench.store, await bench.claim(request(task, 'completed', any)), {})
    await bench.claim(request(task, 'alive', any))
    await queue(task, 'now')
    const before = await bench.recorded(task)

    assert.deepEqual([await due(task), await bench.recorded(task)], [['now'], before])
  })

  it('a run whose lease ran out, and one whose owner is proven dead, are closed and due', async () => {
    const task = bench.task()
    const [silent, dead] = [await bench.claim(request(task, 'silent', { concurrencyKey: null, window: hourFrom('2026-09-20T10:00:00Z') })), await bench.claim(request(task, 'dead', { concurrencyKey: null, window: hourFrom('2026-09-20T11:00:00Z'), instance: { ...request(task).instance, pid: 1 } }))]
    await bench.age(silent.taskKey)

    assert.deepEqual(await due(task, ({ pid }) => pid === 1), ['silent', 'dead'])
    assert.deepEqual([await bench.outcomes(silent.taskKey), await bench.outcomes(dead.taskKey)], [['lost'], ['lost']])
  })

  it('a dead owner’s last attempt is failed, and not due', async () => {
    const task = bench.task()
    await bench.claim(request(task, 'last', { maxAttempts: 1 }))
    await bench.age(`${task}:last`)

    assert.deepEqual(await due(task), [])
    assert.equal((await bench.row(`${task}:last`))['status'], 'failed')
  })

  it('a heartbeat that comes in meanwhile keeps the run', async () => {
    const task = bench.task()
    const slow = await bench.claim(request(task))
    await bench.age(slow.taskKey)
    const late = interrupted(bench.store, async (moment) => {
      if (moment === 'before transaction') await heartbeat(bench.store, slow)
    })

    assert.deepEqual(await dueRuns(late, task, nobodyDied, 100), [])
    assert.equal(await complete(bench.store, slow, {}), true)
  })

  it('running windows do not crowd out the due ones, however few are asked for', async () => {
    const task = bench.task()
    for (const [label, hour] of [['a', '08'], ['b', '09']]) await bench.claim(request(task, label, { concurrencyKey: null, window: hourFrom(`2026-09-20T${hour}:00:00Z`) }))
    await queue(task, 'due', '2026-09-20T10:00:00Z')

    assert.deepEqual(await due(task, nobodyDied, 1), ['due'])
  })
})

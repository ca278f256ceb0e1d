/** A run whose owner is gone is claimed without anybody's help: its attempt is closed as lost in the same transaction. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { claim } from '../../src/store/claim.ts'
import { complete, heartbeat, release } from '../../src/store/close.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { readRun } from '../../src/store/read-run.ts'
import type { DeathCheck } from '../../src/store/lost.ts'
import { interrupted } from '../support/failing-store.ts'
import { eachLedger, everybodyDied, hourFrom, instance, nobodyDied, request } from '../support/ledgers.ts'

eachLedger('takeover', (bench) => {
  it('an owner whose lease ran out is lost, and the next claim has the run: next attempt, larger fence, a lease of its own', async () => {
    const task = bench.task()
    const owner = instance({ host: 'web-2', pid: 811, launcher: 'cron' })
    const first = await bench.claim(request(task, 'one', { instance: owner, window: hourFrom('2026-09-20T10:00:00Z') }))
    await bench.age(first.taskKey)

    const second = await bench.claim(request(task, 'one', { leaseSeconds: 90 }))

    assert.deepEqual([second.attempt, second.fence > first.fence], [2, true])
    const run = await readRun(bench.store, first.taskKey)
    assert.deepEqual([run?.status, run?.instanceId, run?.leaseSeconds, run?.leaseOver], ['processing', second.instanceId, 90, false])
    assert.ok(run!.startedAt! >= run!.createdAt && Math.abs(run!.startedAt!.getTime() - run!.heartbeatAt!.getTime()) < 1000, 'the second attempt began with its own claim')
  })

  it('the line of a lost attempt says who it was, since when, and when the last heartbeat came', async () => {
    const task = bench.task()
    const owner = instance({ host: 'web-2', pid: 811, launcher: 'cron' })
    const first = await bench.claim(request(task, 'one', { instance: owner, window: hourFrom('2026-09-20T10:00:00.454Z') }))
    await bench.age(first.taskKey)
    const before = await bench.row(first.taskKey)

    await bench.claim(request(task))

    const [line, ...more] = await bench.attempts(first.taskKey)
    assert.equal(more.length, 0)
    const same = (...names: string[]) => names.map((name) => [name, line?.[name]])
    assert.deepEqual(same('task_name', 'window_start', 'window_end', 'window_zone', 'attempt', 'instance_id', 'host', 'pid', 'launcher', 'fence', 'started_at', 'heartbeat_at'), [
      ['task_name', task], ...['window_start', 'window_end', 'window_zone', 'attempt', 'instance_id', 'host', 'pid', 'launcher', 'fence', 'started_at', 'heartbeat_at'].map((name) => [name, before[name]]),
    ])
    assert.deepEqual([line?.['outcome'], line?.['reason']], ['lost', 'lost'])
    assert.match(String(line?.['error']), /web-2 pid 811/)
  })

  it('an owner that is proven dead is lost at once; one that is not keeps its lease', async () => {
    const [provenDead, alive] = [bench.task(), bench.task()]
    await bench.claim(request(provenDead, 'one', { instance: instance({ processIdentity: 'gone' }) }))
    await bench.claim(request(alive, 'one', { instance: instance({ processIdentity: 'here' }) }))
    const isDead: DeathCheck = ({ processIdentity }) => processIdentity === 'gone'

    const outcomes = [await claim(bench.store, request(provenDead), isDead), await claim(bench.store, request(alive), isDead)]

    assert.deepEqual(outcomes.map((outcome) => (outcome.status === 'claimed' ? outcome.attempt : outcome.reason)), [2, 'held'])
  })

  it('case 58: an owner lost on the last attempt leaves a failed run, and the next queued run can start', async () => {
    const task = bench.task()
    const last = await bench.claim(request(task, 'monday', { maxAttempts: 1 }))
    await queueRun(bench.store, request(task, 'tuesday'))
    await bench.age(last.taskKey)

    const tuesday = await claim(bench.store, request(task, 'tuesday'), nobodyDied)
    const monday = await claim(bench.store, request(task, 'monday'), nobodyDied)

    assert.equal(tuesday.status, 'claimed')
    assert.equal(monday.status === 'conflict' && monday.reason, 'failed')
    const run = await readRun(bench.store, last.taskKey)
    assert.deepEqual([run?.status, run?.failureReason, run?.attempt], ['failed', 'lost', 1])
    assert.ok(run?.finishedAt)
    assert.deepEqual(await bench.outcomes(last.taskKey), ['lost'])
  })

  it('case 58: the claim of the very key that was lost on its last attempt closes it and is told so', async () => {
    const task = bench.task()
    await bench.claim(request(task, 'one', { maxAttempts: 1 }))
    await bench.age(`${task}:one`)

    const outcome = await claim(bench.store, request(task), nobodyDied)

    assert.equal(outcome.status === 'conflict' && outcome.reason, 'failed')
    assert.equal((await bench.row(`${task}:one`))['active_key'], null)
    assert.equal((await claim(bench.store, request(task, 'two'), nobodyDied)).status, 'claimed')
  })

  it('a dead holder of the concurrency key is closed by the claim of another window, and its run is pending again', async () => {
    const task = bench.task()
    const dead = await bench.claim(request(task, 'monday'))

    const outcome = await claim(bench.store, request(task, 'tuesday'), everybodyDied)

    assert.equal(outcome.status, 'claimed')
    const run = await readRun(bench.store, dead.taskKey)
    assert.deepEqual([run?.status, run?.attempt], ['pending', 1])
    assert.deepEqual(await bench.outcomes(dead.taskKey), ['lost'])
  })

  it('a heartbeat that comes in between the look and the takeover keeps the run with its owner', async () => {
    const task = bench.task()
    const owner = await bench.claim(request(task))
    await bench.age(owner.taskKey)
    const late = interrupted(bench.store, async (moment) => {
      if (moment === 'before transaction') await heartbeat(bench.store, owner)
    })

    const outcome = await claim(late, request(task), nobodyDied)

    assert.equal(outcome.status === 'conflict' && outcome.reason, 'held')
    assert.equal(await complete(bench.store, owner, {}), true)
    assert.deepEqual(await bench.attempts(owner.taskKey), [])
  })

  it('a completion that comes in between the look and the takeover stands', async () => {
    const task = bench.task()
    const owner = await bench.claim(request(task))
    await bench.age(owner.taskKey)
    const late = interrupted(bench.store, async (moment) => {
      if (moment === 'before transaction') await complete(bench.store, owner, {})
    })

    const outcome = await claim(late, request(task), nobodyDied)

    assert.equal(outcome.status === 'conflict' && outcome.reason, 'done')
    assert.deepEqual(await bench.attempts(owner.taskKey), [])
  })

  it('case 85: a slow owner cannot complete or release the run of its successor, and a third launch still finds it held', async () => {
    const task = bench.task()
    const a = await bench.claim(request(task))
    await bench.age(a.taskKey)
    const b = await bench.claim(request(task))
    const before = await bench.recorded(task)

    const refused = [await complete(bench.store, a, {}), await release(bench.store, a, {})]
    const c = await claim(bench.store, request(task), nobodyDied)

    assert.deepEqual(refused, [false, false])
    assert.deepEqual([c.status === 'conflict' && c.reason, await bench.recorded(task)], ['held', before])
    assert.equal(await complete(bench.store, b, {}), true)
  })
})

/** A claim of a run by its key: what it takes, what it refuses, and what the row says afterwards. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { claim } from '../../src/store/claim.ts'
import { complete, fail, release } from '../../src/store/close.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { readRun } from '../../src/store/read-run.ts'
import { eachLedger, hourFrom, instance, nobodyDied, request } from '../support/ledgers.ts'

eachLedger('claim', (bench) => {
  it('a new key is claimed: the first attempt, owned, with a lease that begins on the database clock', async () => {
    const owner = instance({ host: 'web-2', pid: 811, launcher: 'cron' })
    const asked = request(bench.task(), 'one', { instance: owner, leaseSeconds: 42.5, maxAttempts: 7, window: hourFrom('2026-09-20T10:00:00Z', 'Asia/Shanghai') })

    const claimed = await bench.claim(asked)

    assert.deepEqual(claimed, { status: 'claimed', taskKey: asked.taskKey, instanceId: owner.id, attempt: 1, fence: 1n, maxAttempts: 7 })
    const run = await readRun(bench.store, asked.taskKey)
    assert.equal(run?.status, 'processing')
    assert.deepEqual([run.instanceId, run.host, run.pid, run.launcher], [owner.id, 'web-2', 811, 'cron'])
    assert.deepEqual([run.attempt, run.maxAttempts, run.fence, run.leaseSeconds, run.leaseOver], [1, 7, 1n, 42.5, false])
    assert.deepEqual([run.windowStart, run.windowEnd, run.windowZone], [new Date('2026-09-20T10:00:00Z'), new Date('2026-09-20T11:00:00Z'), 'Asia/Shanghai'])
    assert.deepEqual([run.finishedAt, run.failureReason, run.error], [null, null, null])
    assert.ok(Math.abs(run.heartbeatAt!.getTime() - Date.now()) < 60_000, 'the lease begins now')
  })

  it('the lease is counted by the database clock, not by the clock of the claimer', async () => {
    const asked = request(bench.task(), 'one', { leaseSeconds: 60 })
    const fast = await bench.openStore({ clock: { offsetMs: 3_600_000 } })
    await bench.claim(asked)

    const [now, inAnHour] = [await readRun(bench.store, asked.taskKey), await readRun(fast, asked.taskKey)]

    assert.deepEqual([now?.leaseOver, inAnHour?.leaseOver], [false, true])
  })

  it('a key that is processing is a conflict that names its holder, and is left alone', async () => {
    const task = bench.task()
    const held = request(task, 'one', { instance: instance({ host: 'web-2', pid: 811, launcher: 'cron' }) })
    await bench.claim(held)
    const before = await bench.recorded(task)

    const outcome = await claim(bench.store, request(task, 'one'), nobodyDied)

    assert.equal(outcome.status === 'conflict' && outcome.reason, 'held')
    const { holder } = outcome as Extract<typeof outcome, { reason: unknown }>
    assert.deepEqual([holder?.taskKey, holder?.instanceId, holder?.host, holder?.pid, holder?.launcher, holder?.attempt], [held.taskKey, held.instance.id, 'web-2', 811, 'cron', 1])
    assert.deepEqual(await bench.recorded(task), before)
  })

  it('a completed run never runs again', async () => {
    const task = bench.task()
    await complete(bench.store, await bench.claim(request(task)), {})
    const before = await bench.recorded(task)

    const outcomes = [await claim(bench.store, request(task), nobodyDied), await claim(bench.store, request(task, 'one', { isKnown: true }), nobodyDied)]

    assert.deepEqual(outcomes.map((outcome) => outcome.status === 'conflict' && outcome.reason), ['done', 'done'])
    assert.deepEqual(await bench.recorded(task), before)
  })

  it('a failed run never runs again', async () => {
    const task = bench.task()
    await fail(bench.store, await bench.claim(request(task)), 'exit', { exitCode: 3 }, null)
    const before = await bench.recorded(task)

    const outcome = await claim(bench.store, request(task), nobodyDied)

    assert.equal(outcome.status === 'conflict' && outcome.reason, 'failed')
    assert.deepEqual(await bench.recorded(task), before)
  })

  it('a run whose retry is not due yet is a conflict that says when it will be', async () => {
    const task = bench.task()
    await fail(bench.store, await bench.claim(request(task)), 'error', {}, 600)

    const outcome = await claim(bench.store, request(task), nobodyDied)

    assert.equal(outcome.status === 'conflict' && outcome.reason, 'not_due')
    const { dueAt } = outcome as Extract<typeof outcome, { reason: unknown }>
    assert.ok(Math.abs(dueAt!.getTime() - Date.now() - 600_000) < 60_000)
  })

  it('a pending run that is due is taken: the next attempt, counted in the claim', async () => {
    const task = bench.task()
    const first = await bench.claim(request(task))
    await fail(bench.store, first, 'error', {}, 0)

    const second = await bench.claim(request(task))

    assert.deepEqual([second.attempt, second.fence > first.fence], [2, true])
    assert.deepEqual(await bench.outcomes(`${task}:one`), ['failed'])
  })

  it('never hands out more attempts than the run may have, whatever a later launch asks for', async () => {
    const task = bench.task()
    const attempts = []
    for (let launch = 1; launch <= 4; launch++) {
      const outcome = await claim(bench.store, request(task, 'one', { maxAttempts: launch === 1 ? 2 : 100 }), nobodyDied)
      attempts.push(outcome.status === 'claimed' ? outcome.attempt : outcome.reason)
      if (outcome.status === 'claimed') await fail(bench.store, outcome, 'error', {}, outcome.attempt < outcome.maxAttempts ? 0 : null)
    }

    assert.deepEqual(attempts, [1, 2, 'failed', 'failed'])
    await assert.rejects(bench.store.db.updateTable('task_runs').set({ attempt: 3 }).where('task_name', '=', task).execute(), 'the schema guards it too')
  })

  it('another window of the same concurrency key is an overlap while one is processing, and may run after it', async () => {
    const task = bench.task()
    const running = await bench.claim(request(task, 'monday'))

    const during = await claim(bench.store, request(task, 'tuesday'), nobodyDied)
    await complete(bench.store, running, {})
    const afterwards = await claim(bench.store, request(task, 'tuesday'), nobodyDied)

    assert.equal(during.status === 'conflict' && during.reason, 'overlap')
    const { holder } = during as Extract<typeof during, { reason: unknown }>
    assert.deepEqual([during.taskKey, holder?.taskKey], [`${task}:tuesday`, `${task}:monday`])
    assert.equal(afterwards.status, 'claimed')
  })

  it('without a concurrency key any number of windows runs at once', async () => {
    const task = bench.task()

    const outcomes = await Promise.all(['a', 'b', 'c'].map((label) => claim(bench.store, request(task, label, { concurrencyKey: null }), nobodyDied)))

    assert.deepEqual(outcomes.map(({ status }) => status), ['claimed', 'claimed', 'claimed'])
  })

  it('one concurrency key excludes across tasks', async () => {
    const [one, other] = [bench.task(), bench.task()]
    await bench.claim(request(one, 'a', { concurrencyKey: `${one}-tape-drive` }))

    const outcome = await claim(bench.store, request(other, 'a', { concurrencyKey: `${one}-tape-drive` }), nobodyDied)

    assert.equal(outcome.status === 'conflict' && outcome.reason, 'overlap')
  })

  it('a pending run of a busy concurrency key is an overlap, stays pending, and its attempt is not counted', async () => {
    const task = bench.task()
    await queueRun(bench.store, request(task, 'queued'))
    await bench.claim(request(task, 'running'))
    const before = await bench.row(`${task}:queued`)

    const outcomes = [await claim(bench.store, request(task, 'queued'), nobodyDied), await claim(bench.store, request(task, 'queued', { isKnown: true }), nobodyDied)]

    assert.deepEqual(outcomes.map((outcome) => outcome.status === 'conflict' && outcome.reason), ['overlap', 'overlap'])
    assert.deepEqual(await bench.row(`${task}:queued`), before)
  })

  it('the index refuses a second processing run of a concurrency key even to a hand-typed UPDATE', async () => {
    const task = bench.task()
    await queueRun(bench.store, request(task, 'queued'))
    const running = await bench.claim(request(task, 'running'))
    const { active_key } = await bench.row(running.taskKey)
    const typed = bench.store.db.updateTable('task_runs').set({ status: 'processing', active_key: String(active_key), attempt: 1, instance_id: 'x', started_at: bench.store.now(), heartbeat_at: bench.store.now(), lease_seconds: 60 })

    await assert.rejects(typed.where('task_key', '=', `${task}:queued`).execute(), (error) => bench.store.diagnose(error).kind === 'duplicate')
    assert.equal((await bench.row(`${task}:queued`))['status'], 'pending')
  })

  it('a task key has at most one row, also against a hand-typed INSERT', async () => {
    const { taskKey, ...asked } = request(bench.task())
    await bench.claim({ taskKey, ...asked })
    const typed = bench.store.db.insertInto('task_runs').values({ task_key: taskKey, task_name: asked.task, status: 'pending', available_at: bench.store.now(), created_at: bench.store.now(), attempt: 0, max_attempts: 1, fence: 0n })

    await assert.rejects(typed.execute(), (error) => bench.store.diagnose(error).kind === 'duplicate')
    const rows = await bench.store.db.selectFrom('task_runs').select('status').where('task_key', '=', taskKey).execute()
    assert.deepEqual(rows, [{ status: 'processing' }])
  })

  it('a released run can be claimed at once, and has used no attempt up', async () => {
    const task = bench.task()
    await release(bench.store, await bench.claim(request(task, 'one', { maxAttempts: 1 })), {})

    const again = await bench.claim(request(task))

    assert.equal(again.attempt, 1)
    assert.deepEqual(await bench.outcomes(`${task}:one`), ['released'])
  })

  it('case 82: a retry does not inherit the heartbeat of the attempt before', async () => {
    const asked = request(bench.task())
    const first = await bench.claim(asked)
    await bench.age(asked.taskKey, 86_400)
    await fail(bench.store, first, 'error', {}, 0)

    await bench.claim({ ...asked, instance: instance() })

    assert.equal((await readRun(bench.store, asked.taskKey))?.leaseOver, false)
  })

  it('case 45: a lease past 2038 and a run that is due in 2500 are stored as they are', async () => {
    const task = bench.task()
    const until2038 = (Date.parse('2038-01-19T03:14:08Z') - Date.now()) / 1000
    await bench.claim(request(task, 'long', { leaseSeconds: until2038 }))
    await queueRun(bench.store, request(task, 'far'))
    await bench.store.db.updateTable('task_runs').set({ available_at: bench.store.instant(new Date('2500-01-01T12:00:00Z')) }).where('task_key', '=', `${task}:far`).execute()

    const outcome = await claim(bench.store, request(task, 'far'), nobodyDied)

    assert.deepEqual(outcome.status === 'conflict' && [outcome.reason, outcome.dueAt], ['not_due', new Date('2500-01-01T12:00:00Z')])
    const { plusSeconds } = bench.store
    const end = plusSeconds(sql.ref('heartbeat_at'), sql.ref('lease_seconds'))
    const row = await bench.store.db.selectFrom('task_runs').select(end.as('end')).where('task_key', '=', `${task}:long`).executeTakeFirstOrThrow()
    assert.ok(Math.abs(bench.store.readInstant(row.end)!.getTime() - Date.parse('2038-01-19T03:14:08Z')) < 60_000)
    assert.equal((await readRun(bench.store, `${task}:long`))?.leaseOver, false)
  })

  it('case 95: a window that starts at .454 keeps its milliseconds', async () => {
    const asked = request(bench.task(), 'one', { window: hourFrom('2026-09-20T10:00:00.454Z') })
    const claimed = await bench.claim(asked)

    const completed = await complete(bench.store, claimed, {})

    assert.equal(completed, true)
    const run = await readRun(bench.store, asked.taskKey)
    assert.deepEqual([run?.windowStart, run?.windowEnd], [asked.window?.start, asked.window?.end])
  })
})

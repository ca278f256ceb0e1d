/** What a competing launch does: skip, wait, queue or allow; and what becomes of a claim whose answer was lost. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Conflict, OverlapPolicy } from '../../src/model/outcome.ts'
import { Claim } from '../../src/runtime/claim.ts'
import type { Ledger } from '../../src/runtime/ledger.ts'
import type { Launch } from '../../src/runtime/launch.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { cutConnection, interrupted, once, type Moment } from '../support/failing-store.ts'
import { eachLedger, request } from '../support/ledgers.ts'

eachLedger('acquire', (bench) => {
  async function claimed(ledger: Ledger, launch: Launch): Promise<Claim> {
    const outcome = await ledger.claim(launch)
    assert.ok(outcome instanceof Claim, 'reason' in outcome ? outcome.reason : outcome.status)
    return outcome
  }

  async function refused(ledger: Ledger, launch: Launch): Promise<Conflict> {
    const outcome = await ledger.claim(launch)
    assert.equal(outcome.status, 'conflict')
    return outcome as Conflict
  }

  const running = async (task: string, key = 'running') => claimed(await bench.open(), { task, key })

  it('skip: another window of the task is running, so this one is recorded as overlapping it, once', async () => {
    const task = bench.task()
    const holder = await running(task)

    const conflict = await refused(await bench.open(), { task, key: 'mine', overlap: 'skip' })

    assert.deepEqual([conflict.reason, conflict.holder?.instanceId, conflict.holder?.taskKey], ['overlap', holder.instanceId, holder.taskKey])
    assert.deepEqual((await bench.attempts(`${task}:mine`)).map(({ outcome, reason, held_by_key }) => [outcome, reason, held_by_key]), [['conflict', 'overlap', holder.taskKey]])
  })

  it('allow: both run at once; the same key still runs once', async () => {
    const task = bench.task()
    await running(task)
    const ledger = await bench.open()

    const second = await claimed(ledger, { task, key: 'mine', overlap: 'allow' })
    const again = await refused(ledger, { task, key: 'mine', overlap: 'allow' })

    assert.deepEqual([second.attempt, again.reason], [1, 'held'])
  })

  it('wait: gets its turn when the holder is done, and no conflict is recorded', async () => {
    const task = bench.task()
    const holder = await running(task)

    const waiting = claimed(await bench.open(), { task, key: 'mine', overlap: 'wait', waitTimeout: '30s' })
    await holder.complete()

    assert.equal((await waiting).attempt, 1)
    assert.deepEqual(await bench.outcomes(`${task}:mine`), [])
  })

  it('wait: a launch of the key that is held waits as well, and learns that it was done meanwhile', async () => {
    const task = bench.task()
    const holder = await running(task)

    const waiting = refused(await bench.open(), { task, key: 'running', overlap: 'wait', waitTimeout: '30s' })
    await holder.complete()

    assert.equal((await waiting).reason, 'done')
    assert.deepEqual(await bench.outcomes(holder.taskKey), ['conflict done'])
  })

  it('wait: takes over from a holder that dies meanwhile', async () => {
    const task = bench.task()
    const holder = await running(task)

    const waiting = claimed(await bench.open(), { task, key: 'running', overlap: 'wait', waitTimeout: '30s' })
    await bench.age(holder.taskKey)

    assert.equal((await waiting).attempt, 2)
  })

  it('wait: when its time is over it says so, and who held the run is on record', async () => {
    const task = bench.task()
    const holder = await running(task)

    const conflict = await refused(await bench.open(), { task, key: 'mine', overlap: 'wait', waitTimeout: '100ms' })

    assert.deepEqual([conflict.reason, conflict.holder?.taskKey], ['wait_timeout', holder.taskKey])
    assert.deepEqual((await bench.attempts(`${task}:mine`)).map(({ reason, held_by_key }) => [reason, held_by_key]), [['wait_timeout', holder.taskKey]])
  })

  it('wait: a signal ends it early, as if its time were over', async () => {
    const task = bench.task()
    await running(task)
    const stop = new AbortController()

    const waiting = refused(await bench.open(), { task, key: 'mine', overlap: 'wait', waitTimeout: '1h', signal: stop.signal })
    stop.abort()

    assert.equal((await waiting).reason, 'wait_timeout')
  })

  it('wait: looks before it claims, so that the server’s log is not filled with violations, also when its own run is pending', async () => {
    const task = bench.task()
    await running(task)
    for (const key of ['new', 'pending']) {
      if (key === 'pending') await queueRun(bench.store, request(task, key))
      const claims: Moment[] = []
      const ledger = bench.ledgerOn(interrupted(bench.store, (moment) => void (moment === 'before insertFenced' && claims.push(moment))))

      await refused(ledger, { task, key, overlap: 'wait', waitTimeout: '250ms' })

      assert.equal(claims.length, 1, key)
    }
  })

  it('queue: records the window as pending; whoever comes next finds it due when the holder is done', async () => {
    const task = bench.task()
    const holder = await running(task)
    const ledger = await bench.open()

    const outcome = await ledger.claim({ task, key: 'mine', overlap: 'queue', maxAttempts: 4 })
    await holder.complete()

    assert.deepEqual(outcome, { status: 'queued', taskKey: `${task}:mine` })
    assert.deepEqual([(await bench.row(`${task}:mine`))['status'], (await bench.row(`${task}:mine`))['max_attempts'], await bench.outcomes(`${task}:mine`)], ['pending', 4, []])
    assert.deepEqual((await ledger.due(task)).map(({ taskKey }) => taskKey), [`${task}:mine`])
  })

  it('queue: of many launches of one window one run is queued', async () => {
    const task = bench.task()
    await running(task)
    const ledger = await bench.open()

    const outcomes = await Promise.all(Array.from({ length: 5 }, () => ledger.claim({ task, key: 'mine', overlap: 'queue' })))

    assert.deepEqual(outcomes.map(({ status }) => status), Array(5).fill('queued'))
    assert.equal((await bench.recorded(task)).runs.length, 2)
  })

  it('queue: when the holder ends before it could see the queued run, the launch runs it itself', async () => {
    const task = bench.task()
    const holder = await running(task)
    const ledger = bench.ledgerOn(interrupted(bench.store, async (moment) => {
      if (moment === 'before transaction' && (await bench.row(holder.taskKey))['status'] === 'processing') await holder.complete()
    }))

    const claim = await claimed(ledger, { task, key: 'mine', overlap: 'queue' })

    assert.deepEqual([claim.taskKey, claim.attempt, await bench.outcomes(claim.taskKey)], [`${task}:mine`, 1, []])
  })

  it('queue: the very key that is running is a conflict and not queued again', async () => {
    const task = bench.task()
    const holder = await running(task)

    const conflict = await refused(await bench.open(), { task, key: 'running', overlap: 'queue' })

    assert.deepEqual([conflict.reason, await bench.outcomes(holder.taskKey)], ['held', ['conflict held']])
  })

  it('every policy runs when nobody is in the way', async () => {
    const ledger = await bench.open()
    for (const overlap of ['skip', 'wait', 'queue', 'allow'] satisfies OverlapPolicy[]) {
      const claim = await claimed(ledger, { task: bench.task(), key: 'mine', overlap, ...(overlap === 'wait' && { waitTimeout: '1s' }) })
      await claim.complete()
    }
  })

  it('a claim whose answer was lost is recognised as ours: one attempt, and the job may start', async () => {
    const claim = await claimed(bench.ledgerOn(interrupted(bench.store, once('after insertFenced', cutConnection))), { task: bench.task(), key: 'mine' })

    const row = await bench.row(claim.taskKey)
    assert.deepEqual([claim.attempt, claim.fence, row['attempt'], BigInt(row['fence'] as string), await bench.outcomes(claim.taskKey)], [1, 1n, 1, 1n, []])
    await claim.complete()
  })

  it('a claim of a pending run whose answer was lost is recognised as ours as well', async () => {
    const task = bench.task()
    await queueRun(bench.store, request(task, 'mine'))
    const claim = await claimed(bench.ledgerOn(interrupted(bench.store, once('after transaction', cutConnection))), { task, key: 'mine' })

    assert.deepEqual([claim.attempt, (await bench.row(claim.taskKey))['attempt'], await bench.outcomes(claim.taskKey)], [1, 1, []])
    await claim.complete()
  })

  it('a claim that never arrived is not taken for ours when somebody else has the run by then', async () => {
    const task = bench.task()
    let isFirst = true
    const ledger = bench.ledgerOn(interrupted(bench.store, async (moment) => {
      if (moment !== 'before insertFenced' || !isFirst) return
      isFirst = false
      await bench.claim(request(task, 'mine'))
      throw cutConnection()
    }))

    const conflict = await refused(ledger, { task, key: 'mine' })

    assert.deepEqual([conflict.reason, (await bench.row(`${task}:mine`))['attempt']], ['held', 1])
  })

  it('two launches of one key in one process stay one claim when the connection dies under the second', async () => {
    const task = bench.task()
    let launches = 0
    const ledger = bench.ledgerOn(interrupted(bench.store, (moment) => {
      if (moment === 'before insertFenced' && ++launches === 2) throw cutConnection()
    }))

    const first = await claimed(ledger, { task, key: 'mine' })
    const second = await refused(ledger, { task, key: 'mine' })

    assert.deepEqual([second.reason, second.holder?.instanceId], ['held', first.instanceId])
  })
})

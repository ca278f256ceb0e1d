/** What an operator does is done once, guarded like any other move, and recorded with who, from where and why. */
import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { before, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { WorkRun } from '../../src/index.ts'
import type { Claim } from '../../src/runtime/claim.ts'
import type { Ledger } from '../../src/runtime/ledger.ts'
import type { Launch } from '../../src/runtime/launch.ts'
import { claim } from '../../src/store/claim.ts'
import { completeMany } from '../../src/store/complete-batch.ts'
import { eachLedger, everybodyDied, request } from '../support/ledgers.ts'
import { take } from '../support/queue.ts'
import { startWorker } from '../support/workers.ts'

const ann = { by: 'ann', because: 'wrong file' }

eachLedger('operator', (bench) => {
  let ledger: Ledger
  before(async () => (ledger = await bench.open()))

  const state = async (key: string) => {
    const { run } = await ledger.show(key)
    return [run!.status, run!.failureReason, run!.attempt]
  }

  it('a pending run is cancelled at once, and never runs again', async () => {
    const { taskKey, launch } = await pending(ledger, bench.task())

    assert.equal((await ledger.operator.cancel(taskKey, ann)).status, 'cancelled')

    assert.deepEqual(await state(taskKey), ['failed', 'cancelled', 1])
    assert.deepEqual([(await ledger.claim(launch)).status, await ledger.due(launch.task)], ['conflict', []])
  })

  it('case 94: the holder of a cancelled run is told by its next heartbeat, keeps its lease meanwhile, and ends it without another attempt', async () => {
    const launch = { task: bench.task(), key: 'poison', maxAttempts: 5, backoff: 0 }
    const held = await claimed(ledger, launch)

    assert.equal((await ledger.operator.cancel(held.taskKey, ann)).status, 'requested')
    assert.equal(held.signal.aborted, false)
    await bench.age(held.taskKey, 50)
    await assert.rejects(held.heartbeat(), { code: 'RUN_CANCELLED' })

    assert.equal((held.signal.reason as { code: string }).code, 'RUN_CANCELLED')
    const { run } = await ledger.show(held.taskKey)
    assert.ok(run!.status === 'processing' && Date.now() - run!.heartbeatAt!.getTime() < 40_000, 'the heartbeat renewed the lease')
    assert.deepEqual(await held.fail(new Error('aborted')), { retryInMs: null, cancelled: true })
    assert.deepEqual(await state(held.taskKey), ['failed', 'cancelled', 1])
    assert.deepEqual(await bench.outcomes(held.taskKey), ['cancelled'])
    assert.deepEqual((await ledger.claim(launch)).status, 'conflict')
  })

  it('case 94: a handler under ledger.run is aborted by the background heartbeat', async () => {
    const launch = { task: bench.task(), key: 'loop', lease: '3s', heartbeat: '50ms', maxAttempts: 5 }
    const outcome = ledger.run(launch, async (run) => {
      await ledger.operator.cancel(run.taskKey, ann)
      await new Promise((_, reject) => run.signal.addEventListener('abort', () => reject(run.signal.reason as Error)))
    })
    await assert.rejects(outcome, { code: 'RUN_CANCELLED' })
    assert.deepEqual(await state(`${launch.task}:loop`), ['failed', 'cancelled', 1])
  })

  for (const [ending, end] of Object.entries({
    'a failure that would be tried again': (held: Claim) => held.fail('broken'),
    'a release': (held: Claim) => held.release(),
  })) {
    it(`a cancel that no heartbeat has seen yet comes before ${ending}`, async () => {
      const held = await claimed(ledger, { task: bench.task(), key: 'a', maxAttempts: 5, backoff: 0 })
      await ledger.operator.cancel(held.taskKey, ann)

      await end(held)

      assert.deepEqual(await state(held.taskKey), ['failed', 'cancelled', 1])
      assert.deepEqual(await ledger.due(held.task), [])
    })
  }

  it('work that is done when the cancel comes is completed: it is the truth', async () => {
    const held = await claimed(ledger, { task: bench.task(), key: 'a' })
    await ledger.operator.cancel(held.taskKey, ann)
    await held.complete()
    assert.deepEqual(await state(held.taskKey), ['completed', null, 1])
  })

  it('a cancelled run whose holder dies is not given to anybody else: not by the reaper, not by a takeover', async () => {
    for (const how of ['reap', 'takeover'] as const) {
      const asked = request(bench.task(), 'a', { maxAttempts: 5 })
      await bench.claim(asked)
      await ledger.operator.cancel(asked.taskKey, ann)
      await bench.age(asked.taskKey)

      if (how === 'reap') await ledger.reap()
      else assert.equal((await claim(bench.store, { ...asked, instance: request('x').instance }, everybodyDied)).status, 'conflict')

      assert.deepEqual(await state(asked.taskKey), ['failed', 'cancelled', 1], how)
      assert.deepEqual(await bench.outcomes(asked.taskKey), ['lost'], how)
    }
  })

  it('a run whose holder is gone is cancelled at once', async () => {
    const held = await bench.claim(request(bench.task()))
    await bench.age(held.taskKey)
    assert.equal((await ledger.operator.cancel(held.taskKey, ann)).status, 'cancelled')
    assert.deepEqual(await state(held.taskKey), ['failed', 'cancelled', 1])
  })

  it('a failed run that is retried is pending with one attempt more, under its key; then it is final again', async () => {
    const launch = { task: bench.task(), key: 'a' }
    await (await claimed(ledger, launch)).fail('broken')

    assert.equal((await ledger.operator.retry(`${launch.task}:a`, ann)).status, 'reopened')

    const again = await claimed(ledger, launch)
    assert.deepEqual([again.attempt, again.maxAttempts], [2, 2])
    await again.fail('broken')
    assert.deepEqual(await state(again.taskKey), ['failed', 'error', 2])
  })

  it('an enqueued run that failed is retried in its queue, by a worker, with its payload, priority and concurrency key, and not while another of its key runs', async (t) => {
    const task = bench.task()
    const seen: unknown[] = []
    let isBroken = true
    await ledger.enqueue(task, { key: 'a', queue: task, payload: { order: 42 }, priority: 7, concurrencyKey: `${task}-k`, maxAttempts: 1 })
    const { ended, events } = await startWorker(t, ledger, { queues: [task], handlers: { [task]: (payload: unknown, run: WorkRun) => {
      seen.push([run.taskKey, payload, run.attempt])
      if (isBroken) throw new Error('broken')
    } } })
    await ended('failed')
    const [failed] = (await bench.recorded(task)).runs
    isBroken = false
    await ledger.operator.pause(task, ann)

    await ledger.enqueue(`${task}-other`, { key: 'x', queue: `${task}-other`, concurrencyKey: `${task}-k` })
    const [held] = await take(bench.store, `${task}-other`)
    assert.equal((await ledger.operator.retry(`${task}:a`, ann)).status, 'reopened')
    const reopened = await bench.row(`${task}:a`)
    await ledger.operator.resume(task, ann)
    await setTimeout(300)
    assert.equal(seen.length, 1, 'its key is held')
    await completeMany(bench.store, [{ ...held!, result: null }])
    await ended('completed')

    const key = `${task}:a`
    assert.deepEqual(seen, [[key, { order: 42 }, 1], [key, { order: 42 }, 2]])
    assert.deepEqual([reopened['status'], reopened['priority'], reopened['queue'], reopened['payload']], ['pending', failed!['priority'], failed!['queue'], failed!['payload']])
    assert.deepEqual((await ledger.show(key)).history.map(({ attempt, outcome }) => [attempt, outcome]), [[1, 'failed'], [2, 'completed']])
    assert.deepEqual(events.filter(({ event }) => event === 'lost'), [])
  })

  it('a completed run is done again only by force; its first completion stays in the history, and its effects stay done', async () => {
    const launch = { task: bench.task(), key: 'a' }
    let charged = 0
    const job = async (run: Claim) => run.effect('charge', () => ++charged)
    await ledger.run(launch, job)
    const key = `${launch.task}:a`
    const first = (await ledger.show(key)).run!

    const refused = await ledger.operator.retry(key, ann)
    assert.deepEqual([refused.status, await state(key)], ['refused', ['completed', null, 1]])
    assert.equal((await ledger.operator.retry(key, { ...ann, force: true })).status, 'reopened')
    const again = await ledger.run(launch, job)

    assert.deepEqual([again.status, charged], ['completed', 1])
    const { history } = await ledger.show(key)
    assert.deepEqual(history.map(({ attempt, outcome }) => [attempt, outcome]), [[1, 'reopened'], [2, 'completed']])
    assert.deepEqual([history[0]!.endedAt, history[0]!.instanceId], [first.finishedAt, first.instanceId])
  })

  it('a holder is released by hand when its lease is over, or by force; its later writes are refused', async () => {
    const held = await claimed(ledger, { task: bench.task(), key: 'a', lease: '1d', maxAttempts: 5 })

    const refused = await ledger.operator.release(held.taskKey, ann)
    assert.deepEqual([refused.status, (await state(held.taskKey))[0]], ['refused', 'processing'])
    assert.equal((await ledger.operator.release(held.taskKey, { ...ann, force: true })).status, 'released')

    assert.deepEqual([await state(held.taskKey), await bench.outcomes(held.taskKey)], [['pending', null, 1], ['lost']])
    await assert.rejects(held.complete(), { code: 'LEASE_LOST' })
    const expired = await bench.claim(request(bench.task()))
    await bench.age(expired.taskKey)
    assert.equal((await ledger.operator.release(expired.taskKey, ann)).status, 'released')
  })

  it('a paused task lets nothing begin: no launch, no retry, no queued window; resumed, it does', async () => {
    const { taskKey, launch } = await pending(ledger, bench.task())

    assert.deepEqual([await ledger.operator.pause(launch.task, ann), await ledger.operator.pause(launch.task, ann)], [true, false])
    const [due] = await ledger.due(launch.task)
    const [own, taken] = [await ledger.claim({ task: launch.task, key: 'new' }), await ledger.takeUp(due!, launch)]
    assert.deepEqual([own, taken].map((outcome) => 'reason' in outcome && outcome.reason), ['paused', 'paused'])
    assert.deepEqual([await ledger.operator.resume(launch.task), await ledger.operator.resume(launch.task)], [true, false])
    assert.equal((await claimed(ledger, launch)).taskKey, taskKey)
  })

  it('a refused action changes and records nothing', async () => {
    const launch = { task: bench.task(), key: 'a' }
    const held = await claimed(ledger, launch)
    const row = await bench.row(held.taskKey)
    const refused = [await ledger.operator.retry(held.taskKey), await ledger.operator.release(held.taskKey)]
    assert.deepEqual([refused.map(({ status }) => status), await bench.row(held.taskKey)], [['refused', 'refused'], row])
    await held.complete()
    assert.equal((await ledger.operator.cancel(held.taskKey)).status, 'refused')
    assert.deepEqual(await ledger.operator.actions({ task: launch.task }), [])
    await assert.rejects(ledger.operator.cancel('nobody:knows'), { code: 'RUN_NOT_FOUND' })
  })

  it('every action is recorded once with who, from where and why', async () => {
    const { taskKey, launch } = await pending(ledger, bench.task())
    await ledger.operator.pause(launch.task, { by: 'bob' })
    await ledger.operator.resume(launch.task, { by: 'bob' })
    await ledger.operator.cancel(taskKey, ann)
    await ledger.operator.retry(taskKey, { by: 'ann', because: `nul \0 and ${'x'.repeat(5000)}` })
    await claimed(ledger, launch)
    await ledger.operator.release(taskKey, { ...ann, force: true })

    const actions = await ledger.operator.actions({ task: launch.task })

    assert.deepEqual(actions.map(({ name, taskKey: key, by }) => [name, key, by.user, by.host, by.pid]), [
      ['pause', null, 'bob'], ['resume', null, 'bob'], ['cancel', taskKey, 'ann'], ['retry', taskKey, 'ann'], ['release', taskKey, 'ann'],
    ].map((action) => [...action, hostname(), process.pid]))
    assert.deepEqual([actions[0]!.because, actions[2]!.because], [null, 'wrong file'])
    assert.ok(actions[3]!.because!.startsWith('nul ␀ and xxx') && Buffer.byteLength(actions[3]!.because!) <= 1024)
  })

  it('of many operators who retry one run at once, one does, and every other is told that it is pending', async () => {
    const launch = { task: bench.task(), key: 'a' }
    await (await claimed(ledger, launch)).fail('broken')

    const outcomes = await Promise.all(Array.from({ length: 8 }, () => ledger.operator.retry(`${launch.task}:a`, ann)))

    assert.deepEqual(outcomes.map(({ status }) => status).toSorted(), [...Array<string>(7).fill('refused'), 'reopened'])
    assert.deepEqual([(await bench.row(`${launch.task}:a`))['max_attempts'], (await ledger.operator.actions({ task: launch.task })).length], [2, 1])
  })
  it('whatever operators did, every row keeps the promises of the ledger', async () => {
    for await (const finding of ledger.upkeep.verify()) assert.fail(JSON.stringify(finding))
    assert.ok((await ledger.operator.actions({ limit: 1000 })).length > 20, 'they did a lot')
  })
})

async function claimed(ledger: Ledger, launch: Launch): Promise<Claim> {
  const outcome = await ledger.claim(launch)
  assert.ok(outcome.status === 'claimed', JSON.stringify(outcome, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)))
  return outcome
}

/** A run that waits for its second attempt, and the launch that would make it. */
async function pending(ledger: Ledger, task: string): Promise<{ taskKey: string; launch: Launch }> {
  const launch = { task, key: 'a', maxAttempts: 3, backoff: 0 }
  await (await claimed(ledger, launch)).fail('broken')
  return { taskKey: `${task}:a`, launch }
}

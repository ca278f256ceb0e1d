/** The claim as an object: it closes once, knows when it is lost, and records what it was told however the database behaves. */
import assert from 'node:assert/strict'
import { once as event } from 'node:events'
import { it } from 'node:test'
import { Claim } from '../../src/runtime/claim.ts'
import type { Ledger } from '../../src/runtime/ledger.ts'
import type { Launch } from '../../src/runtime/launch.ts'
import { readRun } from '../../src/store/read-run.ts'
import { cutConnection, interrupted, once } from '../support/failing-store.ts'
import { eachLedger, everybodyDied, instance, request } from '../support/ledgers.ts'

const verbs: Record<string, (claim: Claim) => Promise<unknown>> = {
  complete: (claim) => claim.complete(),
  fail: (claim) => claim.fail(new Error('late')),
  release: (claim) => claim.release(),
  heartbeat: (claim) => claim.heartbeat(),
}

eachLedger('claim object', (bench) => {
  async function claimWith(ledger: Ledger, launch: Partial<Launch> = {}): Promise<Claim> {
    const outcome = await ledger.claim({ task: bench.task(), key: 'one', ...launch })
    assert.ok(outcome instanceof Claim)
    return outcome
  }

  for (const [name, verb] of Object.entries(verbs)) {
    it(`after a takeover ${name} says who has the run now, and changes nothing`, async () => {
      const claim = await claimWith(await bench.open())
      await bench.claim(request(claim.task, 'one', { instance: instance({ host: 'web-2', pid: 811 }) }), everybodyDied)
      const before = await bench.recorded(claim.task)

      await assert.rejects(verb(claim), (error: Error & { code?: string; facts?: object }) => {
        assert.match(error.message, /^LEASE_LOST: task-\d+:one attempt 1 .*now held by web-2 pid 811 \(attempt 2\); nothing was recorded$/)
        assert.deepEqual([error.code, error.facts], ['LEASE_LOST', { taskKey: claim.taskKey, attempt: 1, fence: 1n, instanceId: claim.instanceId }])
        return true
      })

      assert.deepEqual(await bench.recorded(claim.task), before)
    })
  }

  for (const [name, verb] of Object.entries(verbs)) {
    it(`once it was closed, ${name} is refused and changes nothing`, async () => {
      const claim = await claimWith(await bench.open())
      await claim.complete({ outputTail: 'first' })
      const before = await bench.recorded(claim.task)

      await assert.rejects(verb(claim), { code: 'LEASE_LOST', message: /the run is completed/ })

      assert.deepEqual(await bench.recorded(claim.task), before)
    })
  }

  it('its signal aborts when a heartbeat finds the run taken', async () => {
    const claim = await claimWith(await bench.open(), { lease: '3s', heartbeat: '50ms' })
    await bench.claim(request(claim.task), everybodyDied)

    await event(claim.signal, 'abort')

    assert.equal(claim.signal.reason.code, 'LEASE_LOST')
    assert.match(claim.signal.reason.message, /no longer ours/)
  })

  it('case 77: it is renewed for as long as the job takes, and neither a launch nor a reaper gets at it', async () => {
    const [a, b] = [await bench.open(), await bench.open()]
    const claim = await claimWith(a, { lease: '900ms', heartbeat: '100ms' })
    const beats = (count: number) => new Promise<void>((resolve) => claim.onRenewed(() => void (--count === 0 && resolve())))

    await beats(6)
    const started = await readRun(bench.store, claim.taskKey)
    const meanwhile = [await b.claim({ task: claim.task, key: 'one' }), await b.reap()]
    await beats(6)

    const [launch, reaped] = meanwhile as [{ reason: string }, unknown[]]
    assert.deepEqual([launch.reason, reaped, claim.signal.aborted], ['held', [], false])
    assert.ok(started!.heartbeatAt!.getTime() - started!.startedAt!.getTime() >= 300, 'the row itself was renewed')
    await claim.complete()
    assert.deepEqual(await bench.outcomes(claim.taskKey), ['conflict held'])
  })

  it('a heartbeat on demand renews the lease', async () => {
    const claim = await claimWith(await bench.open())
    await bench.age(claim.taskKey)

    await claim.heartbeat()

    assert.equal((await readRun(bench.store, claim.taskKey))?.leaseOver, false)
  })

  it('a completion whose answer was lost is found to be done, and is done once', async () => {
    const claim = await claimWith(bench.ledgerOn(interrupted(bench.store, once('after statement', cutConnection))))

    await claim.complete({ outputTail: 'done' })

    const run = await readRun(bench.store, claim.taskKey)
    assert.deepEqual([run?.status, run?.outputTail, await bench.outcomes(claim.taskKey)], ['completed', 'done', []])
  })

  it('a failure whose answer was lost is recorded once, and its retry stands', async () => {
    const claim = await claimWith(bench.ledgerOn(interrupted(bench.store, once('after transaction', cutConnection))), { maxAttempts: 2, backoff: '1s' })

    const { retryInMs } = await claim.fail(new Error('no'))

    assert.ok(retryInMs !== null && retryInMs >= 1000 && retryInMs <= 1100)
    assert.deepEqual([(await bench.row(claim.taskKey))['status'], await bench.outcomes(claim.taskKey)], ['pending', ['failed']])
  })

  it('a release whose answer was lost stands once, even when somebody else has the run by the time we look', async () => {
    const task = bench.task()
    const store = interrupted(bench.store, async (moment) => {
      if (moment !== 'after transaction' || (await bench.row(`${task}:one`))['status'] !== 'pending') return
      await bench.claim(request(task))
      throw cutConnection()
    })
    const claim = await claimWith(bench.ledgerOn(store), { task })

    await claim.release()

    assert.deepEqual([(await bench.row(claim.taskKey))['status'], await bench.outcomes(claim.taskKey)], ['processing', ['released']])
  })

  it('a completion that never reached the database is sent again, as late as it takes', async () => {
    let cuts = 3
    const claim = await claimWith(bench.ledgerOn(interrupted(bench.store, (moment) => { if (moment === 'before statement' && cuts-- > 0) throw cutConnection() })))
    await bench.age(claim.taskKey)

    await claim.complete()

    assert.deepEqual([(await bench.row(claim.taskKey))['status'], cuts < 0], ['completed', true])
  })

  it('a completion that never reached the database, of a run that was taken meanwhile, is lost and changes nothing', async () => {
    const task = bench.task()
    const store = interrupted(bench.store, once('before statement', cutConnection))
    const claim = await claimWith(bench.ledgerOn(store), { task })
    await bench.claim(request(task), everybodyDied)
    const before = await bench.recorded(task)

    await assert.rejects(claim.complete(), { code: 'LEASE_LOST' })

    assert.deepEqual(await bench.recorded(task), before)
  })

  it('any other error of a closing write rises, nothing is written, and the claim can still be closed', async () => {
    let left = 4 // A text that is refused is tried in four forms.
    const store = interrupted(bench.store, (moment) => { if (moment === 'before statement' && left-- > 0) throw new Error('a bug') })
    const claim = await claimWith(bench.ledgerOn(store))
    const before = await bench.recorded(claim.task)

    await assert.rejects(claim.complete(), { message: 'a bug' })

    assert.deepEqual(await bench.recorded(claim.task), before)
    await claim.complete()
    assert.equal((await bench.row(claim.taskKey))['status'], 'completed')
  })

  it('a failure is final when attempts were not asked for, when none is left, and when the caller says so', async () => {
    const ledger = await bench.open()
    const claims = [await claimWith(ledger, {}), await claimWith(ledger, { maxAttempts: 1 }), await claimWith(ledger, { maxAttempts: 3 })]

    const answers = []
    for (const claim of claims) answers.push(await claim.fail('no', { reason: 'exit', exitCode: 3, final: claim === claims[2] }))

    assert.deepEqual(answers, [{ retryInMs: null }, { retryInMs: null }, { retryInMs: null }])
    for (const claim of claims) assert.deepEqual([(await bench.row(claim.taskKey))['status'], await bench.outcomes(claim.taskKey)], ['failed', ['failed']])
  })

  it('a released claim gives its attempt back', async () => {
    const ledger = await bench.open()
    const claim = await claimWith(ledger, { maxAttempts: 1 })

    await claim.release()

    const again = await claimWith(ledger, { task: claim.task })
    assert.deepEqual([again.attempt, again.fence > claim.fence], [1, true])
  })

  it('closing the ledger leaves open claims to their leases: the row stays, and can be completed by nobody else', async () => {
    const ledger = await bench.open()
    const claim = await claimWith(ledger)
    await ledger.close()

    assert.equal((await bench.row(claim.taskKey))['status'], 'processing')
  })
}, { atOnce: true })

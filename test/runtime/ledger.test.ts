/** The ledger as a program uses it: run a job, take up what was left, read what happened. */
import assert from 'node:assert/strict'
import { it, mock } from 'node:test'
import { cron, every } from '../../src/model/window/schedule.ts'
import type { Claim } from '../../src/runtime/claim.ts'
import { openLedger, type Ledger } from '../../src/runtime/ledger.ts'
import type { Launch } from '../../src/runtime/launch.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { cutConnection, interrupted, type Moment } from '../support/failing-store.ts'
import { eachLedger, everybodyDied, request } from '../support/ledgers.ts'

async function claimOf(ledger: Ledger, launch: Launch): Promise<Claim> {
  const outcome = await ledger.claim(launch)
  assert.equal(outcome.status, 'claimed', 'reason' in outcome ? outcome.reason : outcome.status)
  return outcome as Claim
}

eachLedger('ledger', (bench) => {
  it('runs the handler once for a window, returns its value, and records the run as completed', async () => {
    const ledger = await bench.open()
    const launch = { task: bench.task(), window: cron('0 18 * * *', 'Asia/Shanghai'), at: new Date('2026-09-20T10:05:00Z') }

    const outcome = await ledger.run(launch, (claim) => `sent ${claim.window?.start.toISOString()} attempt ${claim.attempt}`)

    const taskKey = `${launch.task}:2026-09-20-18:00`
    assert.deepEqual(outcome, { status: 'completed', taskKey, attempt: 1, value: 'sent 2026-09-20T10:00:00.000Z attempt 1' })
    const { run, history } = await ledger.show(taskKey)
    assert.deepEqual([run?.status, run?.windowStart, run?.windowEnd, run?.windowZone], ['completed', new Date('2026-09-20T10:00:00Z'), new Date('2026-09-21T10:00:00Z'), 'Asia/Shanghai'])
    assert.deepEqual(history.map(({ outcome, instanceId }) => [outcome, instanceId]), [['completed', ledger.instance.id]])
  })

  it('a second launch of the window does not run the handler, and is a recorded conflict', async () => {
    const ledger = await bench.open()
    const launch = { task: bench.task(), window: every('1h'), at: new Date('2026-09-20T10:05:00Z') }
    const handler = mock.fn()
    await ledger.run(launch, handler)

    const outcome = await ledger.run(launch, handler)

    assert.deepEqual([outcome.status, 'reason' in outcome && outcome.reason, handler.mock.callCount()], ['conflict', 'done', 1])
    assert.deepEqual(await bench.outcomes(outcome.taskKey), ['conflict done'])
  })

  it('case 87: a host whose clock is late launches the same window seconds after a short job has ended: it is done', async () => {
    const [a, b] = [await bench.open(), await bench.open()]
    const task = bench.task()
    const window = cron('0 * * * *', 'UTC')
    await a.run({ task, window, at: new Date('2026-09-20T10:00:00.150Z') }, () => {})

    const late = []
    for (const at of ['2026-09-20T10:00:00.020Z', '2026-09-20T09:59:59.998Z', '2026-09-20T10:00:04.100Z']) late.push(await b.claim({ task, window, at: new Date(at) }))

    assert.deepEqual(late.map((outcome) => 'reason' in outcome && outcome.reason), ['done', 'done', 'done'])
  })

  it('what the handler throws is recorded and thrown on; without attempts asked for it is final', async () => {
    const ledger = await bench.open()
    const launch = { task: bench.task(), key: 'one' }
    const failure = new Error('no such mailbox', { cause: new Error('550') })

    await assert.rejects(ledger.run(launch, () => Promise.reject(failure)), failure)

    const { run } = await ledger.show(`${launch.task}:one`)
    assert.deepEqual([run?.status, run?.failureReason, run?.attempt], ['failed', 'error', 1])
    assert.match(run!.error!, /Error: no such mailbox\n +at [^]*caused by: 550/)
    const again = await ledger.claim(launch)
    assert.equal('reason' in again && again.reason, 'failed')
  })

  it('with attempts asked for, a failed one is repeated until none is left', async () => {
    const ledger = await bench.open()
    const launch = { task: bench.task(), key: 'one', maxAttempts: 2, backoff: 0 }

    for (let attempt = 1; attempt <= 2; attempt++) await assert.rejects(ledger.run(launch, () => Promise.reject(new Error(`attempt ${attempt}`))), { message: `attempt ${attempt}` })

    const { run, history } = await ledger.show(`${launch.task}:one`)
    assert.deepEqual([run?.status, run?.attempt], ['failed', 2])
    assert.deepEqual(history.map(({ outcome, attempt }) => [outcome, attempt]), [['failed', 1], ['failed', 2]])
  })

  it('no ledger, no run: the handler does not start when the claim could not be made', async () => {
    const handler = mock.fn()
    const moments: Moment[] = ['before insertFenced', 'before transaction', 'after insertFenced']
    for (const error of [cutConnection, () => new Error('a bug')]) {
      for (const moment of moments) {
        const task = bench.task()
        await queueRun(bench.store, request(task, 'pending'))
        const broken = bench.ledgerOn(interrupted(bench.store, (now) => { if (now === moment) throw error() }), { patienceMs: 0 })
        await assert.rejects(broken.run({ task, key: moment === 'before transaction' ? 'pending' : 'new' }, handler))
      }
    }
    assert.equal(handler.mock.callCount(), 0)
  })

  it('an option that makes no sense starts nothing and writes nothing', async () => {
    const ledger = await bench.open()
    const task = bench.task()
    const handler = mock.fn()
    const wrong: Partial<Launch>[] = [{ task: 'no spaces' }, { key: ' x' }, { lease: '1ms' }, { lease: '5s', heartbeat: '2s' }, { maxAttempts: 0 }, { overlap: 'never' as 'skip' }, { overlap: 'wait' }, { waitTimeout: '5s' }, { backoff: -1 }, { at: new Date(NaN) }, { key: 'x', window: every('1h') }]

    for (const options of wrong) await assert.rejects(ledger.run({ task, ...options }, handler), { code: 'INVALID_OPTION' }, JSON.stringify(options))

    assert.equal(handler.mock.callCount(), 0)
    assert.deepEqual(await bench.recorded(task), { runs: [], attempts: [] })
  })

  it('case 68: a retry and the next window never run together, whichever comes first, and both are on record with their reasons', async () => {
    const clock = { offsetMs: 0 }
    const ledger = await bench.open({ clock })
    const noon = { task: bench.task(), window: every('1h'), at: new Date('2026-09-20T12:30:00Z'), maxAttempts: 5, backoff: '5s' }
    const one = { ...noon, at: new Date('2026-09-20T13:00:00Z') }
    await (await claimOf(ledger, noon)).fail(new Error('first try'))

    const newWindow = await claimOf(ledger, one)
    clock.offsetMs += 10_000
    const retry = await ledger.claim(noon)
    await newWindow.fail(new Error('also'))
    const retried = await claimOf(ledger, noon)
    clock.offsetMs += 10_000
    const second = await ledger.claim(one)

    assert.deepEqual([retry, second].map((outcome) => 'reason' in outcome && [outcome.reason, outcome.holder?.taskKey]), [['overlap', newWindow.taskKey], ['overlap', retried.taskKey]])
    await retried.complete()
    assert.deepEqual([await bench.outcomes(retried.taskKey), await bench.outcomes(newWindow.taskKey)], [['failed', 'conflict overlap'], ['failed', 'conflict overlap']])
  })

  it('takes up what is due under its own window, with the terms of the launch', async () => {
    const ledger = await bench.open()
    const launch = { task: bench.task(), window: every('1h'), at: new Date('2026-09-20T10:00:00Z'), lease: '30s' }
    const left = await claimOf(ledger, launch)
    await left.release()

    const [due, ...more] = await ledger.due(launch.task)
    const taken = await ledger.takeUp(due!, { ...launch, at: new Date('2026-09-20T12:00:00Z') })

    assert.deepEqual([due?.taskKey, more], [left.taskKey, []])
    assert.ok(taken.status === 'claimed')
    assert.deepEqual([taken.taskKey, taken.window, taken.attempt, taken.leaseMs], [left.taskKey, left.window, 1, 30_000])
    assert.equal((await bench.row(left.taskKey))['concurrency_key'], launch.task)
  })

  it('that somebody else took it up first is no lost launch: it is returned and not recorded', async () => {
    const [a, b] = [await bench.open(), await bench.open()]
    const launch = { task: bench.task(), key: 'one' }
    await (await claimOf(a, launch)).release()
    const [due] = await b.due(launch.task)
    await claimOf(a, launch)

    const outcome = await b.takeUp(due!, launch)

    assert.equal('reason' in outcome && outcome.reason, 'held')
    assert.deepEqual(await bench.outcomes(due!.taskKey), ['released'])
  })

  it('a run whose number of attempts is used up is not taken up again, whatever the launch allows', async () => {
    const ledger = await bench.open()
    const launch = { task: bench.task(), key: 'one', maxAttempts: 1 }
    const { taskKey } = await claimOf(ledger, launch)
    await bench.age(taskKey)

    assert.deepEqual(await ledger.due(launch.task), [])
    const outcome = await ledger.claim({ ...launch, maxAttempts: 9 })
    assert.equal('reason' in outcome && outcome.reason, 'failed')
  })

  it('a run that was lost while the handler worked is an error to its caller, and its result is not recorded', async () => {
    const ledger = await bench.open()
    const launch = { task: bench.task(), key: 'one' }

    await assert.rejects(ledger.run(launch, async () => void (await bench.claim(request(launch.task), everybodyDied))), { code: 'LEASE_LOST' })

    assert.deepEqual([(await bench.row(`${launch.task}:one`))['status'], await bench.outcomes(`${launch.task}:one`)], ['processing', ['lost']])
  })

  it('a manual run excludes overlap, is a run of its own each time, and is not repeated after a crash', async () => {
    const ledger = await bench.open()
    const task = bench.task()
    const first = await claimOf(ledger, { task })
    const during = await ledger.claim({ task })
    await first.complete()
    const second = await claimOf(ledger, { task })

    assert.equal('reason' in during && during.reason, 'overlap')
    assert.match(first.taskKey, new RegExp(`^${task}:manual-`))
    assert.notEqual(second.taskKey, first.taskKey)
    assert.equal(second.maxAttempts, 1)
  })

  it('what was never launched is not found', async () => {
    const ledger = await bench.open()
    await assert.rejects(ledger.show('no:such'), { code: 'RUN_NOT_FOUND' })
    assert.deepEqual(await ledger.runs({ task: 'no-such' }), [])
  })

  it('the newest runs come first', async () => {
    const ledger = await bench.open()
    const task = bench.task()
    for (const key of ['a', 'b']) await ledger.run({ task, key, overlap: 'allow' }, () => {})

    assert.deepEqual((await ledger.runs({ task })).map(({ status }) => status), ['completed', 'completed'])
    assert.equal((await ledger.runs({ task, limit: 1 })).length, 1)
  })

  it('of twenty launches of one window from four ledgers exactly one runs, and nineteen are on record', async () => {
    const ledgers = await Promise.all(Array.from({ length: 4 }, () => bench.open()))
    const launch = { task: bench.task(), window: every('1h'), at: new Date('2026-09-20T10:00:00Z') }
    const handler = mock.fn()

    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, index) => ledgers[index % 4]!.run(launch, handler)))

    assert.deepEqual([handler.mock.callCount(), outcomes.filter(({ status }) => status === 'completed').length], [1, 1])
    const { attempts } = await bench.recorded(launch.task)
    assert.deepEqual([attempts.length, new Set(attempts.map(({ outcome }) => outcome))], [19, new Set(['conflict'])])
  })

  it('a password, a user or a whole URL never shows in where the ledger is', async () => {
    const ledger = await openLedger(bench.url)
    assert.doesNotMatch(ledger.place, /:\/\/|app:app|postgres@/)
    await ledger.close()
  })
})

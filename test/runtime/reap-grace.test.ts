/** After an outage that it saw, a reaper gives everybody a whole lease to come back before it calls anybody lost. */
import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { heartbeat } from '../../src/store/close.ts'
import { cutConnection, interrupted } from '../support/failing-store.ts'
import { eachLedger, request } from '../support/ledgers.ts'

const LEASE_SECONDS = 60

/** Moves the monotonic clock of this process, on which a reaper counts the lease it gives. */
function movingClock(t: TestContext): { pass(seconds: number): void } {
  const real = process.hrtime.bigint.bind(process.hrtime)
  let ahead = 0n
  t.mock.method(process.hrtime, 'bigint', () => real() + ahead)
  return { pass: (seconds) => void (ahead += BigInt(Math.round(seconds * 1e9))) }
}

eachLedger('case 89: grace', (bench) => {
  async function silentRun(): Promise<Awaited<ReturnType<typeof bench.claim>>> {
    await bench.store.db.deleteFrom('task_runs').execute() // The reaper looks at everybody's.
    const held = await bench.claim(request(bench.task(), 'one', { leaseSeconds: LEASE_SECONDS }))
    await bench.age(held.taskKey)
    return held
  }

  /** A store that can be cut off from its database and joined to it again. */
  function cuttable() {
    const line = { isCut: false, cuts: 0 }
    const store = interrupted(bench.store, () => {
      if (line.isCut || line.cuts-- > 0) throw cutConnection()
    })
    return { line, store }
  }

  const keys = (reaped: { run: { taskKey: string } }[]) => reaped.map(({ run }) => run.taskKey)

  it('a reaper that saw none reaps at once', async () => {
    const silent = await silentRun()

    assert.deepEqual(keys(await bench.ledgerOn(bench.store).reap()), [silent.taskKey])
  })

  it('a reaper whose pass failed waits one lease from the first pass that gets through, then reaps', async (t) => {
    const clock = movingClock(t)
    const silent = await silentRun()
    const { line, store } = cuttable()
    const reaper = bench.ledgerOn(store, { patienceMs: 0 })
    line.isCut = true
    for (let pass = 0; pass < 2; pass++) await assert.rejects(reaper.reap(), { code: 'DATABASE_UNAVAILABLE' })
    clock.pass(LEASE_SECONDS) // However long the outage was: the lease counts from its end.
    line.isCut = false

    const first = await reaper.reap()
    clock.pass(LEASE_SECONDS - 5)
    const second = await reaper.reap()
    clock.pass(5)
    const third = await reaper.reap()

    assert.deepEqual([keys(first), keys(second), keys(third)], [[], [], [silent.taskKey]])
  })

  it('a reaper whose pass came through an outage waits as well', async (t) => {
    const clock = movingClock(t)
    const silent = await silentRun()
    const { line, store } = cuttable()
    const reaper = bench.ledgerOn(store)
    line.cuts = 2

    const first = await reaper.reap()
    clock.pass(LEASE_SECONDS)
    const second = await reaper.reap()

    assert.deepEqual([keys(first), keys(second)], [[], [silent.taskKey]])
  })

  it('a reaper that could not open its database at first waits as well', async () => {
    await silentRun()

    assert.deepEqual(await bench.ledgerOn(bench.store, { sawOutage: true }).reap(), [])
  })

  it('an owner that comes back meanwhile keeps its run', async (t) => {
    const clock = movingClock(t)
    const owner = await silentRun()
    const { line, store } = cuttable()
    const reaper = bench.ledgerOn(store, { patienceMs: 0 })
    line.isCut = true
    await assert.rejects(reaper.reap())
    line.isCut = false
    await reaper.reap()

    assert.equal(await heartbeat(bench.store, owner), 'renewed')
    clock.pass(LEASE_SECONDS)
    await heartbeat(bench.store, owner)
    assert.deepEqual(await reaper.reap(), [])
  })
})

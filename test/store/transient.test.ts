/** Deadlocks and their kind, at any statement and at COMMIT, are tried again and leave one effect; any other error rises and leaves none. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { claim, type Claimed } from '../../src/store/claim.ts'
import { complete, fail, heartbeat, release } from '../../src/store/close.ts'
import { recordConflict } from '../../src/store/conflict.ts'
import { raiseFence } from '../../src/store/fence.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { reap } from '../../src/store/reap.ts'
import { dueRuns } from '../../src/store/recover.ts'
import type { Store } from '../../src/store/tables.ts'
import { deadlock, failingAt } from '../support/failing-store.ts'
import { eachLedger, everybodyDied, nobodyDied, request, type Bench } from '../support/ledgers.ts'

interface Verb {
  /** Brings a task to where the verb begins. */
  prepare(bench: Bench, task: string): Promise<Claimed | null>
  run(store: Store, task: string, held: Claimed): Promise<unknown>
}

const nothing = async () => null
const held = (bench: Bench, task: string) => bench.claim(request(task))
const expired = async (bench: Bench, task: string) => {
  await bench.store.db.deleteFrom('task_runs').execute() // The reaper looks at everybody's.
  const claimed = await held(bench, task)
  await bench.age(claimed.taskKey)
  return claimed
}
const pending = async (bench: Bench, task: string) => {
  await queueRun(bench.store, request(task))
  return null
}

const verbs: Record<string, Verb> = {
  'claim of a pending key': { prepare: pending, run: (store, task) => claim(store, request(task), nobodyDied) },
  'claim from a dead owner': { prepare: expired, run: (store, task) => claim(store, request(task), nobodyDied) },
  'claim beside a dead holder': { prepare: held, run: (store, task) => claim(store, request(task, 'two'), everybodyDied) },
  heartbeat: { prepare: held, run: (store, _, of) => heartbeat(store, of) },
  complete: { prepare: held, run: (store, _, of) => complete(store, of, {}) },
  fail: { prepare: held, run: (store, _, of) => fail(store, of, 'error', {}, null) },
  'fail with a retry': { prepare: held, run: (store, _, of) => fail(store, of, 'error', {}, 0) },
  release: { prepare: held, run: (store, _, of) => release(store, of, {}) },
  reap: { prepare: expired, run: (store) => reap(store) },
  'due runs': { prepare: expired, run: (store, task) => dueRuns(store, task, nobodyDied, 10) },
  queue: { prepare: nothing, run: (store, task) => queueRun(store, request(task)) },
  conflict: { prepare: held, run: (store, task) => recordConflict(store, request(task), { status: 'conflict', reason: 'held', taskKey: `${task}:one`, holder: null, dueAt: null }) },
}

eachLedger('transient', (bench) => {
  /** What a verb did, without what differs from run to run. */
  async function effectOf(task: string) {
    const { runs, attempts } = await bench.recorded(task)
    const pick = (row: Record<string, unknown>, ...names: string[]) => names.map((name) => row[name])
    return { runs: runs.map((row) => pick(row, 'status', 'attempt', 'failure_reason')), attempts: attempts.map((row) => pick(row, 'outcome', 'reason', 'attempt')) }
  }

  for (const [name, { prepare, run }] of Object.entries(verbs)) {
    it(`${name}: a deadlock at any of its statements, or at COMMIT, is tried again`, async () => {
      const smooth = bench.task()
      await run(bench.store, smooth, (await prepare(bench, smooth))!)
      const expected = await effectOf(smooth)

      for (let number = 0, fired = true; fired; number++) {
        const task = bench.task()
        const failing = failingAt(bench.store, number, deadlock)
        await run(failing.store, task, (await prepare(bench, task))!)
        assert.deepEqual(await effectOf(task), expected, `at statement ${number}`)
        fired = failing.fired()
      }
    })

    it(`${name}: any other error at any of its statements, or before COMMIT, rises and leaves nothing half done`, async () => {
      for (let number = 0; ; number++) {
        const task = bench.task()
        const of = (await prepare(bench, task))!
        const before = await bench.recorded(task)
        const failing = failingAt(bench.store, number, () => new Error('injected bug'))
        const outcome = await run(failing.store, task, of).catch((error: unknown) => error)
        if (!failing.fired()) break
        assert.equal(outcome instanceof Error && outcome.message, 'injected bug', `at statement ${number}`)
        const after = await bench.recorded(task)
        // Beside a dead holder there are two units of work: the first may stand, and the run is then free for the next launch.
        if (!(name === 'claim beside a dead holder' && after.attempts.length === 1)) assert.deepEqual(after, before, `at statement ${number}`)
      }
    })
  }

  it('a claim of a new key outlasts somebody who holds the fence of its scope', async () => {
    const task = bench.task()
    const other = await bench.openStore()
    const [locked, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const holding = other.transaction(async (tx) => {
      await raiseFence(tx, task)
      locked.resolve()
      await done.promise
    })
    await locked.promise

    const claiming = claim(bench.store, request(task), nobodyDied)
    const early = await Promise.race([claiming, sleep(50, 'still waiting')])
    done.resolve()

    assert.equal(early, 'still waiting')
    const outcome = await claiming
    assert.equal(outcome.status === 'claimed' && outcome.fence, 2n, 'the other was first')
    await holding
  })

  it('a deadlock that comes again and again is tried again and again', async () => {
    const task = bench.task()
    const of = await held(bench, task)
    let left = 8
    const store: Store = {
      ...bench.store,
      transaction: (work) =>
        bench.store.transaction(async (tx) => {
          const result = await work(tx)
          if (left-- > 0) throw deadlock()
          return result
        }),
    }

    assert.equal(await release(store, of, {}), true)
    assert.deepEqual(await bench.outcomes(of.taskKey), ['released'])
  })
})

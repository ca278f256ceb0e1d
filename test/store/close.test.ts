/** What a holder may do with its run, and what the row and the history say afterwards. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { migrate } from '../../src/runtime/schema.ts'
import { claim, type Claimed } from '../../src/store/claim.ts'
import { complete, fail, heartbeat, release } from '../../src/store/close.ts'
import { readRun } from '../../src/store/read-run.ts'
import type { Store } from '../../src/store/tables.ts'
import { eachLedger, instance, nobodyDied, request, type Bench } from '../support/ledgers.ts'

eachLedger('close', (bench) => {
  it('a heartbeat renews the lease from the database clock on, and touches nothing else', async () => {
    const held = await bench.claim(request(bench.task()))
    await bench.age(held.taskKey, 59)
    const before = await bench.row(held.taskKey)

    assert.equal(await heartbeat(bench.store, held), 'renewed')

    const after = await bench.row(held.taskKey)
    assert.deepEqual({ ...after, heartbeat_at: null }, { ...before, heartbeat_at: null })
    const renewed = (await readRun(bench.store, held.taskKey))!.heartbeatAt!
    assert.ok(renewed.getTime() - bench.store.readInstant(before['heartbeat_at'])!.getTime() > 58_000)
  })

  it('a late heartbeat or completion counts as long as nobody has taken the run', async () => {
    const held = await bench.claim(request(bench.task()))
    await bench.age(held.taskKey)

    assert.deepEqual([await heartbeat(bench.store, held), (await readRun(bench.store, held.taskKey))?.leaseOver], ['renewed', false])
    await bench.age(held.taskKey)
    assert.equal(await complete(bench.store, held, {}), true)
  })

  it('case 37: two heartbeats within one tick of the clock both succeed, whatever the URL says about counting rows', async () => {
    const frozen = bench.store.instant(new Date('2026-09-20T10:00:00Z'))
    const url = withDriverFlags(bench)
    await migrate(url)
    for (const store of [bench.store, await bench.openStore({}, url)]) {
      const outcome = await claim(store, request(bench.task()), nobodyDied)
      assert.equal(outcome.status, 'claimed')
      const still = { ...store, now: () => frozen }

      const beats = [await heartbeat(still, outcome as Claimed), await heartbeat(still, outcome as Claimed)]

      assert.deepEqual(beats, ['renewed', 'renewed'])
    }
  })

  it('case 37: a run that is completed already is not completed again, whatever the URL says about counting rows', async () => {
    for (const store of [bench.store, await bench.openStore({}, withDriverFlags(bench))]) {
      const outcome = await claim(store, request(bench.task()), nobodyDied)
      assert.equal(outcome.status, 'claimed')

      const answers = [await complete(store, outcome as Claimed, {}), await complete(store, outcome as Claimed, {})]

      assert.deepEqual(answers, [true, false])
    }
  })

  it('a completed run says how it ended, frees its concurrency key, and needs no line of history', async () => {
    const held = await bench.claim(request(bench.task()))

    await complete(bench.store, held, { exitCode: 0, outputTail: 'all sent' })

    const run = await readRun(bench.store, held.taskKey)
    assert.deepEqual([run?.status, run?.exitCode, run?.error, run?.outputTail, run?.failureReason], ['completed', 0, null, 'all sent', null])
    assert.ok(run?.finishedAt)
    assert.equal((await bench.row(held.taskKey))['active_key'], null)
    assert.deepEqual(await bench.attempts(held.taskKey), [])
  })

  it('a failed run says why, and its attempt stands in the history', async () => {
    const held = await bench.claim(request(bench.task()))

    await fail(bench.store, held, 'exit', { exitCode: 3, error: 'exit code 3', outputTail: 'no such file' }, null)

    const run = await readRun(bench.store, held.taskKey)
    assert.deepEqual([run?.status, run?.failureReason, run?.exitCode, run?.error, run?.outputTail], ['failed', 'exit', 3, 'exit code 3', 'no such file'])
    const [line] = await bench.attempts(held.taskKey)
    assert.deepEqual([line?.['outcome'], line?.['reason'], line?.['exit_code'], line?.['error'], line?.['output_tail'], line?.['attempt']], ['failed', 'exit', 3, 'exit code 3', 'no such file', 1])
  })

  it('an attempt that failed and is to be repeated leaves its line, and a pending run that is due when the backoff is over', async () => {
    const held = await bench.claim(request(bench.task()))
    const later = await bench.openStore({ clock: { offsetMs: 31_000 } })

    await fail(bench.store, held, 'exit', { exitCode: 3, error: 'exit code 3' }, 30)

    const run = await readRun(bench.store, held.taskKey)
    assert.deepEqual([run?.status, run?.due, run?.attempt, run?.failureReason, run?.exitCode, run?.error, run?.finishedAt], ['pending', false, 1, null, null, null, null])
    assert.deepEqual((await bench.attempts(held.taskKey)).map(({ outcome, reason, exit_code }) => [outcome, reason, exit_code]), [['failed', 'exit', 3]])
    assert.equal((await readRun(later, held.taskKey))?.due, true)
  })

  it('a backoff of a millisecond, and one of ten years, are kept', async () => {
    for (const seconds of [0.001, 315_360_000]) {
      const held = await bench.claim(request(bench.task()))
      await fail(bench.store, held, 'error', {}, seconds)
      const { secondsBetween } = bench.store
      const row = await bench.store.db.selectFrom('task_runs').select(secondsBetween(bench.store.now(), sql.ref('available_at')).as('left')).where('task_key', '=', held.taskKey).executeTakeFirstOrThrow()
      assert.ok(Math.abs(Number(row.left) - seconds) < 30, `${seconds}: ${row.left}`)
    }
  })

  it('a released run is pending and due, its attempt is given back, and the history says released', async () => {
    const held = await bench.claim(request(bench.task()))

    await release(bench.store, held, { error: 'shutting down' })

    const run = await readRun(bench.store, held.taskKey)
    assert.deepEqual([run?.status, run?.due, run?.attempt, run?.finishedAt], ['pending', true, 0, null])
    assert.deepEqual((await bench.attempts(held.taskKey)).map(({ outcome, attempt, error }) => [outcome, attempt, error]), [['released', 1, 'shutting down']])
  })

  it('an attempt ends in the instant in which its run moved, and not when its line was written: whoever waited for the key began after that', async () => {
    const ends = []
    for (const [give, delay] of [[giveBack, 0], [failFor(0), 0], [failFor(0.25), 250], [failFor(null), 0]] as const) {
      const held = await bench.claim(request(bench.task()))
      let ticks = 0
      await give({ ...bench.store, now: () => bench.store.instant(new Date(Date.parse('2126-09-20T10:00:00Z') + 10 * ticks++)) }, held)

      const [row, [line]] = [await bench.row(held.taskKey), await bench.attempts(held.taskKey)]
      const moved = bench.store.readInstant(row['finished_at'] ?? row['available_at'])!.getTime() - delay
      ends.push(bench.store.readInstant(line?.['ended_at'])!.getTime() - moved)
    }
    assert.deepEqual(ends, [0, 0, 0, 0])
  })

  it('however often it is released, a run keeps all its attempts', async () => {
    const task = bench.task()
    for (let start = 0; start < 4; start++) await release(bench.store, await bench.claim(request(task, 'one', { maxAttempts: 2 })), {})

    const attempts = []
    for (let start = 0; start < 2; start++) {
      const held = await bench.claim(request(task))
      attempts.push(held.attempt)
      await fail(bench.store, held, 'error', {}, held.attempt < held.maxAttempts ? 0 : null)
    }

    assert.deepEqual(attempts, [1, 2])
  })

  it('case 52: microseconds in the row stand in nobody’s way: a hundred completions of a hundred', async () => {
    const task = bench.task()
    const answers = []
    for (let round = 0; round < 100; round += 10) {
      const batch = Array.from({ length: 10 }, async (_, index) => {
        const held = await bench.claim(request(task, `${round + index}`, { concurrencyKey: null, instance: instance() }))
        await bench.store.db.updateTable('task_runs').set({ heartbeat_at: sql`'2026-09-20 10:00:00.123456'`, started_at: sql`'2026-09-20 10:00:00.123456'` }).where('task_key', '=', held.taskKey).execute()
        await readRun(bench.store, held.taskKey)
        return complete(bench.store, held, {})
      })
      answers.push(...(await Promise.all(batch)))
    }

    assert.deepEqual(answers, Array(100).fill(true))
  })
})

/** As a user of mysql2 may have it; a file has no driver to be told anything. */
function withDriverFlags({ url, db }: Bench): string {
  return db.name === 'sqlite' ? url : `${url}?flags=-FOUND_ROWS`
}

const giveBack = (store: Store, held: Claimed) => release(store, held, {})
const failFor = (seconds: number | null) => (store: Store, held: Claimed) => fail(store, held, 'error', {}, seconds)

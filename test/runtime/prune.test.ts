/** Retention: what goes, what stays, and that nothing which went runs again. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import type { PrunedTask, PruneOptions } from '../../src/index.ts'
import type { Ledger } from '../../src/runtime/ledger.ts'
import { claim } from '../../src/store/claim.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { eachServerLedger, session } from '../support/each-server.ts'
import { interrupted } from '../support/failing-store.ts'
import { eachLedger, hourFrom, instance, nobodyDied, request, type Bench } from '../support/ledgers.ts'
import { OLD, oldKey, oldWindows, windowKey, windowOf } from '../support/old-runs.ts'

const AGE = '30d'

async function all(pruned: AsyncGenerator<PrunedTask>): Promise<PrunedTask[]> {
  const tasks: PrunedTask[] = []
  for await (const one of pruned) tasks.push(one)
  return tasks
}

async function prune(ledger: Ledger, task: string, options: Partial<PruneOptions> = {}): Promise<PrunedTask> {
  const [pruned, ...more] = await all(ledger.upkeep.prune({ olderThan: AGE, task, by: 'ann', ...options }))
  assert.deepEqual(more, [])
  return pruned!
}

const keysOf = async (bench: Bench, task: string) => (await bench.recorded(task)).runs.map((row) => String(row['task_key']))

async function prunedBefore(bench: Bench, task: string): Promise<Date | null> {
  const row = await bench.store.db.selectFrom('tasks').select('pruned_before').where('task_name', '=', task).executeTakeFirst()
  return row ? bench.store.readInstant(row.pruned_before) : null
}

/** What a launch of the window comes back with. */
async function launch(bench: Bench, task: string, nth: number): Promise<string> {
  const outcome = await claim(bench.store, request(task, windowKey(task, nth).slice(task.length + 1), { window: windowOf(nth), concurrencyKey: null }), nobodyDied)
  return outcome.status === 'conflict' ? outcome.reason : outcome.status
}

/** A line of task_attempts, long ago. */
function line(bench: Bench, task: string, taskKey: string, outcome: 'conflict' | 'failed') {
  const { store } = bench
  return store.db.insertInto('task_attempts').values({ task_key: taskKey, task_name: task, outcome, ended_at: store.instant(OLD), output_tail: 'out', reason: outcome === 'conflict' ? 'held' : 'error' }).execute()
}

eachLedger('prune', (bench) => {
  it('takes old windows with their attempts and conflicts, and leaves what is newer, not over, or of another task', async () => {
    const [task, other] = [bench.task(), bench.task()]
    const ledger = await bench.open()
    await oldWindows(bench.store, task, 0, 9)
    await oldWindows(bench.store, other, 0, 3)
    for (const outcome of ['failed', 'conflict'] as const) for (const nth of [0, 9]) await line(bench, task, windowKey(task, nth), outcome)
    await oldWindows(bench.store, task, 10, 10, { finished_at: bench.store.now() })
    await oldKey(bench.store, task, 'waiting', { status: 'pending', finished_at: null, attempt: 0 })
    await oldKey(bench.store, task, 'running', { status: 'processing', finished_at: null })

    const pruned = await prune(ledger, task)

    assert.deepEqual([pruned.runs, pruned.attempts, pruned.prunedBefore], [10, 4, windowOf(9).end])
    assert.deepEqual(await keysOf(bench, task), [`${task}:running`, `${task}:waiting`, windowKey(task, 10)].toSorted())
    assert.deepEqual((await bench.recorded(task)).attempts, [])
    assert.equal((await keysOf(bench, other)).length, 4)
  })

  it('promise 1: a pruned window does not run again, whoever launches or queues it; the next one does', async () => {
    const task = bench.task()
    await oldWindows(bench.store, task, 0, 5)
    await prune(await bench.open(), task)

    assert.deepEqual([await launch(bench, task, 0), await launch(bench, task, 4)], ['pruned', 'pruned'])
    assert.equal(await queueRun(bench.store, request(task, 'w000003', { window: windowOf(3) })), false)
    assert.deepEqual(await keysOf(bench, task), [windowKey(task, 5)])
    assert.deepEqual([await launch(bench, task, 5), await launch(bench, task, 6)], ['done', 'claimed'])
  })

  it('the newest window, the newest completed one and all after it stay, and pruned_before does not go beyond them', async () => {
    const task = bench.task()
    const ledger = await bench.open()
    await oldWindows(bench.store, task, 0, 3)
    await oldWindows(bench.store, task, 4, 6, { status: 'failed', failure_reason: 'error' })

    const pruned = await prune(ledger, task)

    assert.deepEqual(await keysOf(bench, task), [3, 4, 5, 6].map((nth) => windowKey(task, nth)))
    assert.deepEqual([pruned.runs, pruned.kept.newest, await prunedBefore(bench, task)], [3, 4, windowOf(3).start])
    const neverDone = bench.task()
    await oldWindows(bench.store, neverDone, 0, 3, { status: 'failed', failure_reason: 'error' })
    await prune(ledger, neverDone)
    assert.deepEqual(await keysOf(bench, neverDone), [windowKey(neverDone, 3)])
  })

  it('pruned_before stops at the newest window also where a longer one reaches over it', async () => {
    const task = bench.task()
    await oldWindows(bench.store, task, 0, 0, { window_end: bench.store.instant(windowOf(24).start) })
    await oldWindows(bench.store, task, 5, 5)
    await prune(await bench.open(), task)
    assert.deepEqual(await prunedBefore(bench, task), windowOf(5).start)
    assert.deepEqual([await launch(bench, task, 0), await launch(bench, task, 6)], ['pruned', 'claimed'])
  })

  it('the bar is there before the first row goes, and is never lowered', async () => {
    const task = bench.task()
    await oldWindows(bench.store, task, 0, 4)
    const seen: unknown[] = []
    const watched = interrupted(bench.store, async (moment) => {
      if (moment === 'before transaction') seen.push([(await keysOf(bench, task)).length, await prunedBefore(bench, task)])
    })
    await prune(bench.ledgerOn(watched), task)
    // The transaction that deletes is the last one; where claims are outwaited by one of their own, that comes before.
    assert.deepEqual(seen.at(-1), [5, windowOf(4).start])

    await bench.store.db.updateTable('tasks').set({ pruned_before: bench.store.instant(windowOf(50).start) }).where('task_name', '=', task).execute()
    await oldWindows(bench.store, task, 5, 9)
    await prune(await bench.open(), task)
    assert.deepEqual(await prunedBefore(bench, task), windowOf(50).start)
  })

  it('a failed run that was kept can be retried, whatever was pruned around it', async () => {
    const task = bench.task()
    const { store } = bench
    await oldWindows(store, task, 0, 0, { status: 'failed', failure_reason: 'error' })
    await oldWindows(store, task, 1, 5)

    const pruned = await prune(await bench.open(), task, { keepFailed: true })

    assert.deepEqual([pruned.runs, await keysOf(bench, task)], [4, [windowKey(task, 0), windowKey(task, 5)]])
    assert.ok((await prunedBefore(bench, task))! > windowOf(0).start)
    await store.db.updateTable('task_runs').set({ status: 'pending', finished_at: null, failure_reason: null }).where('task_key', '=', windowKey(task, 0)).execute()
    assert.equal(await launch(bench, task, 0), 'claimed')
  })

  it('fences survive: the next claim of the scope has a greater one than any that was pruned', async () => {
    const task = bench.task()
    const ledger = await bench.open()
    let last = 0n
    for (const label of ['a', 'b', 'c']) {
      const claimed = await ledger.claim({ task, window: undefined, key: label })
      assert.ok(claimed.status === 'claimed')
      last = claimed.fence
      await claimed.complete()
    }
    await bench.store.db.updateTable('task_runs').set({ finished_at: bench.store.instant(OLD) }).where('task_name', '=', task).execute()
    assert.equal((await prune(ledger, task, { keyed: true })).runs, 2)
    assert.ok((await bench.claim(request(task, 'd'))).fence > last)
  })

  it('runs under a key of the caller stay unless it is said, manual ones go, and of each kind the newest completed one stays', async () => {
    const task = bench.task()
    const ledger = await bench.open()
    const manual = 'manual-0199a4d2-3b5c-7def-8123-0123456789ab'
    for (const label of ['a', 'b', manual, 'manual-of-the-house']) await oldKey(bench.store, task, label)
    await oldKey(bench.store, task, 'last', { finished_at: bench.store.instant(new Date(OLD.getTime() + 3_600_000)) })

    assert.deepEqual([await prune(ledger, task).then(({ runs, kept }) => [runs, kept.keyed, kept.newest])], [[1, 3, 1]])
    assert.deepEqual((await keysOf(bench, task)).length, 4)
    assert.equal((await prune(ledger, task, { keyed: true })).runs, 3)
    assert.deepEqual(await keysOf(bench, task), [`${task}:last`])
  })

  it('effects that are over go with their run; with a business key they stay, and one in doubt keeps its run', async () => {
    const task = bench.task()
    const ledger = await bench.open()
    await oldWindows(bench.store, task, 0, 4)
    const effect = (nth: number, key: string, status: 'started' | 'in_doubt' | 'done' | 'not_done') =>
      bench.store.db.insertInto('task_effects').values({ effect_key: key, effect_name: 'mail', task_key: windowKey(task, nth), task_name: task, status, call_id: 'c', calls: 1, instance_id: 'then', attempt: 1, fence: 1n, started_at: bench.store.instant(OLD), done_at: status === 'done' ? bench.store.instant(OLD) : null }).execute()
    await effect(0, `${windowKey(task, 0)}#mail`, 'done')
    await effect(0, `${windowKey(task, 0)}#retry`, 'not_done')
    await effect(0, `invoice-${task}`, 'done')
    await effect(1, `${windowKey(task, 1)}#mail`, 'in_doubt')
    await effect(1, `${windowKey(task, 1)}#done`, 'done')
    await effect(2, `invoice-2-${task}`, 'started')

    const pruned = await prune(ledger, task)

    assert.deepEqual([pruned.runs, pruned.effects, pruned.kept.inDoubt], [2, 2, 2])
    assert.deepEqual(await keysOf(bench, task), [1, 2, 4].map((nth) => windowKey(task, nth)))
    assert.deepEqual((await ledger.effects.list({ task })).map(({ effectKey }) => effectKey).toSorted(), [`${windowKey(task, 1)}#done`, `${windowKey(task, 1)}#mail`, `invoice-2-${task}`, `invoice-${task}`].toSorted())
  })

  it('lines of launches that lost go when they are old and their key has no run', async () => {
    const task = bench.task()
    await oldWindows(bench.store, task, 5, 5)
    for (const nth of [5, 6, 7]) await line(bench, task, windowKey(task, nth), 'conflict')
    await bench.store.db.insertInto('task_attempts').values({ task_key: windowKey(task, 8), task_name: task, outcome: 'conflict', reason: 'overlap', ended_at: bench.store.now() }).execute()

    assert.equal((await prune(await bench.open(), task, { batch: 1 })).refusals, 2)
    assert.deepEqual((await bench.recorded(task)).attempts.map((row) => row['task_key']), [windowKey(task, 5), windowKey(task, 8)])
  })

  it('payloads only: every row stays, with its payload if it failed', async () => {
    const task = bench.task()
    const ledger = await bench.open()
    const carried = { payload: '{"a":1}', result: '{"b":2}', output_tail: 'the end' }
    await oldWindows(bench.store, task, 0, 1, carried)
    await oldWindows(bench.store, task, 2, 2, { ...carried, status: 'failed', failure_reason: 'error' })
    await oldWindows(bench.store, task, 3, 3, { ...carried, finished_at: bench.store.now() })
    await line(bench, task, windowKey(task, 0), 'failed')

    assert.equal((await prune(ledger, task, { payloadsOnly: true, dryRun: true })).payloads, 3)
    assert.equal((await prune(ledger, task, { payloadsOnly: true })).payloads, 3)
    assert.equal((await prune(ledger, task, { payloadsOnly: true })).payloads, 0)
    const { runs, attempts } = await bench.recorded(task)
    assert.deepEqual(runs.map((row) => [row['payload'] !== null, row['result'] !== null, row['output_tail'] !== null]), [[false, false, false], [false, false, false], [true, false, false], [true, true, true]])
    assert.equal(attempts[0]!['output_tail'], null)
    assert.equal(await prunedBefore(bench, task), null)
  })

  it('a dry run counts what a prune then takes, and changes and records nothing', async () => {
    const task = bench.task()
    const ledger = await bench.open()
    await oldWindows(bench.store, task, 0, 20)
    await line(bench, task, windowKey(task, 3), 'failed')
    await line(bench, task, `${task}:nobody`, 'conflict')
    const before = await bench.recorded(task)

    const { prunedBefore: _, ...counted } = await prune(ledger, task, { dryRun: true, batch: 4 })

    assert.deepEqual([await bench.recorded(task), await prunedBefore(bench, task)], [before, null])
    assert.deepEqual(await actions(task), [])
    const { prunedBefore: bar, ...taken } = await prune(ledger, task, { batch: 4 })
    assert.deepEqual([counted, bar], [taken, windowOf(20).start])
    assert.equal(taken.runs, 20)
  })

  it('case 46: it ends between two batches when it is told to, and the next one goes on', async () => {
    const task = bench.task()
    const stop = new AbortController()
    await oldWindows(bench.store, task, 0, 20)
    let batches = 0
    const watched = interrupted(bench.store, (moment) => {
      if (moment === 'after transaction' && ++batches > 3) stop.abort()
    })
    const first = await prune(bench.ledgerOn(watched), task, { batch: 2, signal: stop.signal })

    assert.ok(first.interrupted && first.runs > 0 && first.runs < 20, String(first.runs))
    assert.equal((await keysOf(bench, task)).length, 21 - first.runs)
    const second = await prune(await bench.open(), task, { batch: 2 })
    assert.deepEqual([first.runs + second.runs, second.interrupted], [20, false])
    assert.deepEqual((await actions(task)).map(({ by, runs, interrupted }) => [by, runs, interrupted]), [['ann', first.runs, true], ['ann', second.runs, false]])
  })

  it('what nobody needs any more is recorded as taken: who, why, the bounds and the counts', async () => {
    const task = bench.task()
    await oldWindows(bench.store, task, 0, 2)
    await prune(await bench.open(), task, { because: 'the disk is full' })
    const [{ because, runs, pruned_before, finished_before } = {}] = await actions(task)
    assert.deepEqual([because, runs, pruned_before], ['the disk is full', 2, windowOf(2).start.toISOString()])
    assert.ok(Math.abs(Date.parse(String(finished_before)) - (Date.now() - 30 * 86_400_000)) < 60_000)
    await prune(await bench.open(), task)
    assert.equal((await actions(task)).length, 1)
  })

  it('all tasks are found, also one of which only lost launches are left', async () => {
    const [a, b] = [bench.task(), bench.task()]
    await oldWindows(bench.store, a, 0, 2)
    await line(bench, b, `${b}:x`, 'conflict')
    const pruned = new Map((await all((await bench.open()).upkeep.prune({ olderThan: AGE }))).map((one) => [one.task, one]))
    assert.deepEqual([pruned.get(a)?.runs, pruned.get(b)?.refusals], [2, 1])
  })

  for (const [what, options] of [['no age', { olderThan: 0 }], ['an age in the wrong unit', { olderThan: '90s' }], ['a batch of thousands', { batch: 1001 }], ['a batch of none', { batch: 0 }], ['keyed payloads', { payloadsOnly: true, keyed: true }], ['a nameless hand', { by: '' }], ['no task', { task: '' }]] as const) {
    it(`${what} is refused before anything goes`, async () => {
      const task = bench.task()
      await oldWindows(bench.store, task, 0, 2)
      await assert.rejects(async () => prune(await bench.open(), task, options), { code: 'INVALID_OPTION' })
      assert.equal((await keysOf(bench, task)).length, 3)
    })
  }

  async function actions(task: string) {
    const rows = await bench.store.db.selectFrom('task_actions').selectAll().where('task_name', '=', task).where('action', '=', 'prune').orderBy('acted_at').execute()
    return rows.map((row) => ({ by: row.acted_by, because: row.because, ...(JSON.parse(row.details!) as { runs: number; pruned_before: string; finished_before: string; interrupted: boolean }) }))
  }
}, { atOnce: true })

/** Takes its view of the tables, then stands still. */
const SLOWLY = { postgres: 'pg_sleep(1) is null', mariadb: 'sleep(1) > 0', mysql: 'sleep(1) > 0' } as const

eachServerLedger('prune', (bench, db) => {
  it('a claim that took its view before the bar was there does not bring a pruned window back', async () => {
    const task = bench.task()
    const { store } = bench
    await oldWindows(store, task, 0, 3)
    await store.db.insertInto('task_fences').values({ scope: task, counter: 10n }).execute()
    const { start } = windowOf(1)
    const slowBar = sql`select 1 from ${store.table('tasks')} where task_name = ${task} and pruned_before > ${store.instant(start)} union all select 1 from (select 1 as one) s where ${sql.raw(SLOWLY[db.name])}`
    const values = { task_key: windowKey(task, 1), task_name: task, window_start: store.instant(start), status: sql`'pending'`, available_at: store.now(), created_at: store.now(), attempt: 0, max_attempts: 1 }

    const late = store.insertFenced({ scope: task, table: 'task_runs', values, unless: slowBar }).then((fence) => (fence === null ? 'barred' : 'inserted'), (error: unknown) => store.diagnose(error).kind)
    await new Promise((resolve) => setTimeout(resolve, 300))
    const pruned = await prune(await bench.open(), task)

    assert.equal(await late, 'duplicate')
    assert.deepEqual([pruned.runs, await keysOf(bench, task)], [3, [windowKey(task, 3)]])
  })

  it('case 29: rows that somebody holds are passed over, not waited for, and go the next time', async () => {
    const task = bench.task()
    const ledger = await bench.open()
    await oldWindows(bench.store, task, 0, 5, { output_tail: 'out' })
    const holder = await session(bench.url)
    await holder.query('begin')
    await holder.query(`select * from task_runs where task_key = '${windowKey(task, 2)}' for update`)
    assert.equal((await prune(ledger, task, { payloadsOnly: true })).payloads, 5)
    assert.equal((await prune(ledger, task)).runs, 4)
    await holder.end()
    assert.equal((await prune(ledger, task)).runs, 1)
  })

  it('a new scope that is outwaited begins above the floor like any other', async () => {
    const { store } = bench
    const floor = await (await bench.open()).fences.bump(1_000n)
    const task = bench.task()
    await store.outwaitClaims([task])
    const { fence } = await bench.claim(request(task, 'a', { window: hourFrom('2026-09-20T10:00:00Z'), instance: instance() }))
    assert.ok(fence > floor)
  })
}, { atOnce: true })

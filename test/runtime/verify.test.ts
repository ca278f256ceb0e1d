/** verify finds what was written past the ledger, each promise by itself, and nothing where all is well. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Finding } from '../../src/index.ts'
import type { Ledger } from '../../src/runtime/ledger.ts'
import type { DatabaseName } from '../support/databases.ts'
import { eachLedger, hourFrom, request, type Bench } from '../support/ledgers.ts'
import { oldWindows, windowKey } from '../support/old-runs.ts'

/** Of one session, or for good: the CHECKs say nothing. */
const UNCHECKED: Record<DatabaseName, string> = {
  sqlite: 'pragma ignore_check_constraints = on;',
  mariadb: 'set check_constraint_checks = 0;',
  postgres: ['status', 'owned', 'active', 'finished', 'reason', 'reasons', 'attempts'].map((name) => `alter table task_runs drop constraint if exists task_runs_${name};`).join(' ') + ' alter table task_attempts drop constraint if exists task_attempts_outcome; alter table task_effects drop constraint if exists task_effects_done; alter table task_effects drop constraint if exists task_effects_status; alter table task_effects drop constraint if exists task_effects_result;',
  mysql: '',
}
const MYSQL_CHECKS = ['task_runs.task_runs_status', 'task_runs.task_runs_owned', 'task_runs.task_runs_active', 'task_runs.task_runs_finished', 'task_runs.task_runs_reason', 'task_runs.task_runs_reasons', 'task_runs.task_runs_attempts', 'task_attempts.task_attempts_outcome', 'task_effects.task_effects_done', 'task_effects.task_effects_status', 'task_effects.task_effects_result']
UNCHECKED.mysql = MYSQL_CHECKS.map((name) => `alter table ${name.split('.')[0]} alter check ${name.split('.')[1]} not enforced;`).join(' ')

const NO_INDEX: Record<DatabaseName, string> = { sqlite: 'drop index task_runs_active_key', postgres: 'drop index task_runs_active_key', mariadb: 'drop index task_runs_active_key on task_runs', mysql: 'drop index task_runs_active_key on task_runs' }

async function verify(ledger: Ledger, task?: string): Promise<Finding[]> {
  const findings: Finding[] = []
  for await (const one of ledger.upkeep.verify({ task })) findings.push(one)
  return findings
}

/** `a` failed, was released, and completed in attempt 2 with an effect; `b` lost its owner and is processing again; both had conflicts. */
async function makeHistory(bench: Bench, ledger: Ledger, task: string): Promise<void> {
  const launch = { task, key: 'a', maxAttempts: 5, backoff: 0 } as const
  const claimed = async (key = 'a') => {
    const outcome = await ledger.claim({ ...launch, key })
    assert.ok(outcome.status === 'claimed')
    return outcome
  }
  await (await claimed()).fail('broken')
  await (await claimed()).release()
  const third = await claimed()
  await ledger.claim(launch)
  await third.effect('mail', () => 'sent')
  await third.complete()
  await ledger.claim(launch)
  await bench.claim(request(task, 'b'))
  await bench.age(`${task}:b`)
  await bench.claim(request(task, 'b'))
}

eachLedger('verify', (bench) => {
  it('finds nothing in a ledger that nobody wrote past', async () => {
    const ledger = await bench.open()
    const [task, pruned] = [bench.task(), bench.task()]
    await makeHistory(bench, ledger, task)
    await bench.store.db.insertInto('task_fences').values({ scope: pruned, counter: 5n }).execute()
    for (let nth = 0; nth < 5; nth++) await oldWindows(bench.store, pruned, nth, nth, { fence: BigInt(nth + 1) })
    for await (const _ of ledger.upkeep.prune({ olderThan: '30d', task: pruned })) continue
    await bench.claim(request(pruned, 'new', { window: hourFrom('2026-09-20T10:00:00Z') }))

    const findings = ledger.upkeep.verify()
    const { done, value } = await findings.next()
    assert.deepEqual([done, value], [true, { runs: 4, lines: 5, effects: 1, scopes: 2 }])
  })

  const one = (task: string, column: string, value: string, key = 'a') => `update task_runs set ${column} = ${value} where task_key = '${task}:${key}'`
  const lines = (task: string, key = 'a') => `task_key = '${task}:${key}' and outcome <> 'conflict'`
  const AT = `'2026-09-20 10:00:00'`
  for (const [what, promise, sql, problem] of [
    ['an attempt that ended after the run was completed', 1, (task) => `insert into task_attempts (task_key, task_name, attempt, outcome, fence, ended_at) values ('${task}:a', '${task}', 2, 'failed', 99, ${AT})`, /completed by attempt 2, and attempt 2 ended later/],
    ['a run without its concurrency key', 3, (task) => one(task, 'active_key', 'null', 'b'), /processing without holding its concurrency key/],
    ['a run that is over and holds a key', 3, (task) => one(task, 'active_key', `'left-${task}'`), /is completed and still holds left-/],
    ['a run that nobody owns', 3, (task) => one(task, 'instance_id', 'null', 'b'), /processing without owner/],
    ['a fence below that of an earlier attempt', 5, (task) => one(task, 'fence', '0'), /has fence 0, and an earlier attempt had 2/],
    ['fences of attempts that do not grow', 5, (task) => `update task_attempts set fence = 9 where ${lines(task)} and attempt = 1`, /attempt 2 \(released\) has fence 2, after 9/],
    ['two runs with one fence', 5, (task) => one(task, 'fence', '4'), /has fence 4, which another run of the scope/],
    ['a counter behind the largest fence', 5, (task) => `update task_fences set counter = 1 where scope = '${task}'`, /the counter is at 1, and fence 5 was handed out/],
    ['a counter that is gone', 5, (task) => `delete from task_fences where scope = '${task}'`, /the scope has no counter, and fence 5/],
    ['more attempts than there may be', 7, (task) => one(task, 'max_attempts', '1'), /attempt 2 of at most 1/],
    ['an attempt that is missing', 7, (task) => `delete from task_attempts where ${lines(task)} and attempt = 1`, /attempt 1 is missing before attempt 2/],
    ['an attempt that is there twice', 7, (task) => `update task_attempts set attempt = 1 where ${lines(task)}`, /attempt 1 \(released\) is there again after attempt 1/],
    ['a row and a history that do not agree', 7, (task) => one(task, 'attempt', '3'), /is completed in attempt 3, and by its history in attempt 2/],
    ['an attempt without a number', 7, (task) => `update task_attempts set attempt = null where ${lines(task)} and attempt = 1`, /an attempt that failed has no number/],
    ['a run whose attempts are there and which is not', 8, (task) => `delete from task_runs where task_key = '${task}:a'`, /attempt 1 failed, and its run is gone/],
    ['an end that is missing', 8, (task) => one(task, 'finished_at', 'null'), /is completed without an end/],
    ['an end that has not come', 8, (task) => one(task, 'finished_at', AT, 'b'), /is processing and has an end/],
    ['a reason of one that did not fail', 8, (task) => one(task, 'failure_reason', `'error'`), /is completed with a reason to have failed/],
    ['a reason that is none', 8, (task) => one(task, 'failure_reason', `'gremlins'`), /failed for the unknown reason "gremlins"/],
    ['a state that is none', 8, (task) => one(task, 'status', `'running'`), /unknown state "running"/],
    ['an outcome that is none', 8, (task) => `update task_attempts set outcome = 'vanished' where ${lines(task)} and attempt = 1`, /ended in the unknown way "vanished"/],
    ['half a window', 8, (task) => one(task, 'window_start', AT), /has a part of a window/],
    ['a window that ends before it begins', 8, (task) => `update task_runs set window_zone = 'UTC', window_start = ${AT}, window_end = '2026-09-20 09:00:00' where task_key = '${task}:a'`, /its window ends .* before it begins/],
    ['an effect that is done at no time', 10, (task) => `update task_effects set done_at = null where task_name = '${task}'`, /is done, and nobody knows when/],
    ['an effect that was done and is not', 10, (task) => `update task_effects set status = 'started', result = null where task_name = '${task}'`, /is started, and was done at/],
    ['a result of nothing', 10, (task) => `update task_effects set status = 'not_done', done_at = null where task_name = '${task}'`, /is not_done and has a result/],
    ['a conflict that counts as an attempt', 11, (task) => `update task_attempts set attempt = 3 where task_key = '${task}:a' and outcome = 'conflict'`, /a launch that lost counts as attempt 3/],
    ['a conflict without a reason', 11, (task) => `update task_attempts set reason = null where task_key = '${task}:a' and outcome = 'conflict'`, /a launch lost without a reason/],
  ] as [string, number, (task: string) => string, RegExp][]) {
    it(`promise ${promise}: finds ${what}`, async () => {
      const ledger = await bench.open()
      const task = bench.task()
      await makeHistory(bench, ledger, task)
      assert.deepEqual(await verify(ledger, task), [])
      await bench.db.admin(`${UNCHECKED[bench.db.name]} ${sql(task)}`, bench.url)
      const found = (await verify(ledger, task)).filter((finding) => finding.promise === promise)
      assert.ok(found.some((finding) => problem.test(finding.problem)), JSON.stringify(found))
      assert.ok(found.every(({ key }) => key.startsWith(task)), JSON.stringify(found))
    })
  }

  it('promise 1: finds a pruned window that is there again', async () => {
    const ledger = await bench.open()
    const task = bench.task()
    await oldWindows(bench.store, task, 0, 4, { fence: 0n })
    for await (const _ of ledger.upkeep.prune({ olderThan: '30d', task })) continue
    assert.deepEqual(await verify(ledger, task), [])
    await oldWindows(bench.store, task, 2, 2, { fence: 0n, created_at: bench.store.now() })
    assert.deepEqual((await verify(ledger, task)).map(({ promise, key }) => [promise, key]), [[1, windowKey(task, 2)]])
  })

  it('what moves while it is looked at is no finding', async () => {
    const ledger = await bench.open()
    const task = bench.task()
    const stop = new AbortController()
    const working = Promise.all(['x', 'y', 'z'].map((key) => work(key)))
    for (let look = 0; look < 15; look++) assert.deepEqual(await verify(ledger, task), [])
    stop.abort()
    await working

    async function work(key: string): Promise<void> {
      while (!stop.signal.aborted) {
        const claim = await ledger.claim({ task, key, overlap: 'allow', maxAttempts: 1000, backoff: 0 })
        if (claim.status !== 'claimed') return
        await (Math.random() < 0.5 ? claim.fail('again') : claim.release())
      }
    }
  })

  // The last of the suite: it breaks the schema.
  it('promise 3: finds two runs that hold one key, where the index is gone', async () => {
    const ledger = await bench.open()
    const task = bench.task()
    await bench.claim(request(task, 'a'))
    await bench.claim(request(task, 'b', { concurrencyKey: null }))
    await bench.db.admin(NO_INDEX[bench.db.name], bench.url)
    await bench.db.admin(`update task_runs set active_key = '${task}', concurrency_key = '${task}' where task_name = '${task}'`, bench.url)
    assert.deepEqual((await verify(ledger)).filter(({ key }) => key === task), [{ promise: 3, task: null, key: task, problem: `2 runs hold it: ${task}:a, ${task}:b` }])
  })
})

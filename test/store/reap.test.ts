/** One pass of the reaper: every expired attempt is closed once, and nothing else is touched, however many reap at the same time. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { beforeEach, it } from 'node:test'
import { sql } from 'kysely'
import { complete, fail } from '../../src/store/close.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { readRun } from '../../src/store/read-run.ts'
import { reap } from '../../src/store/reap.ts'
import { eachLedger, request } from '../support/ledgers.ts'

eachLedger('reap', (bench) => {
  /** Nothing is left over from the test before. */
  beforeEach(async () => {
    for (const table of ['task_runs', 'task_attempts'] as const) await bench.store.db.deleteFrom(table).execute()
  })

  async function expired(task: string, labels: string[], maxAttempts = 3): Promise<void> {
    for (const label of labels) await bench.claim(request(task, label, { concurrencyKey: null, maxAttempts }))
    await bench.store.db.updateTable('task_runs').set({ heartbeat_at: bench.store.plusSeconds(bench.store.now(), sql.lit(-3600)) }).where('task_name', '=', task).execute()
  }

  it('an expired attempt with attempts left is lost, and its run is pending and due at once', async () => {
    const task = bench.task()
    await expired(task, ['one'])

    const reaped = await reap(bench.store)

    assert.deepEqual(reaped.map(({ run, now }) => [run.taskKey, run.attempt, now]), [[`${task}:one`, 1, 'pending']])
    const run = await readRun(bench.store, `${task}:one`)
    assert.deepEqual([run?.status, run?.due, run?.attempt], ['pending', true, 1])
    assert.equal((await bench.row(`${task}:one`))['active_key'], null)
    assert.deepEqual(await bench.outcomes(`${task}:one`), ['lost'])
    assert.equal((await bench.claim(request(task))).attempt, 2)
  })

  it('an expired last attempt leaves a failed run that says it was lost', async () => {
    const task = bench.task()
    await expired(task, ['one'], 1)

    const reaped = await reap(bench.store)

    assert.deepEqual(reaped.map(({ now }) => now), ['failed'])
    const run = await readRun(bench.store, `${task}:one`)
    assert.deepEqual([run?.status, run?.failureReason, run?.attempt], ['failed', 'lost', 1])
    assert.match(run!.error!, /host-a pid 4711/)
  })

  it('case 92: touches nothing but expired processing runs', async () => {
    const task = bench.task()
    const old = { available_at: bench.store.plusSeconds(bench.store.now(), sql.lit(-864_000)), created_at: bench.store.plusSeconds(bench.store.now(), sql.lit(-864_000)) }
    const exclusive = { concurrencyKey: null }
    await queueRun(bench.store, request(task, 'waiting', exclusive))
    await fail(bench.store, await bench.claim(request(task, 'retry', exclusive)), 'error', {}, 0)
    await fail(bench.store, await bench.claim(request(task, 'failed', exclusive)), 'error', {}, null)
    await complete(bench.store, await bench.claim(request(task, 'completed', exclusive)), {})
    await bench.store.db.updateTable('task_runs').set(old).where('task_name', '=', task).execute()
    for (const label of ['retry', 'failed', 'completed']) await bench.age(`${task}:${label}`, 864_000)
    await bench.claim(request(task, 'alive', exclusive))
    await bench.age(`${task}:alive`, 50)
    const before = await bench.recorded(task)

    const reaped = await reap(bench.store)

    assert.deepEqual([reaped, await bench.recorded(task)], [[], before])
  })

  it('a pass closes more than one batch, each run once', async () => {
    const task = bench.task()
    await expired(task, ['one'])
    const copy = sql.raw(['task_name', 'queue', 'priority', 'status', 'available_at', 'attempt', 'max_attempts', 'fence', 'instance_id', 'host', 'pid', 'lease_seconds', 'started_at', 'heartbeat_at', 'created_at'].join(', '))
    const keys = Array.from({ length: 209 }, (_, index) => sql`select ${`${task}:copy-${index}`} as task_key`)
    await sql`insert into ${bench.store.table('task_runs')} (task_key, ${copy}) select k.task_key, ${copy} from ${bench.store.table('task_runs')} r cross join (${sql.join(keys, sql` union all `)}) k where r.task_key = ${`${task}:one`}`.execute(bench.store.db)

    const reaped = await reap(bench.store)

    assert.equal(new Set(reaped.map(({ run }) => run.taskKey)).size, 210)
    assert.equal(reaped.length, 210)
    assert.equal((await bench.recorded(task)).attempts.length, 210)
    assert.deepEqual(await reap(bench.store), [])
  })

  it('a bound on the lease leaves longer ones alone', async () => {
    const task = bench.task()
    await expired(task, ['long', 'short'])
    await bench.store.db.updateTable('task_runs').set({ lease_seconds: 5 }).where('task_key', '=', `${task}:short`).execute()

    const passes = [await reap(bench.store, 4.9), await reap(bench.store, 5), await reap(bench.store, 60)]

    assert.deepEqual(passes.map((pass) => pass.map(({ run }) => run.taskKey)), [[], [`${task}:short`], [`${task}:long`]])
  })

  it('a bound of no time at all, or less, reaps nothing', async () => {
    await expired(bench.task(), ['one'])

    assert.deepEqual([await reap(bench.store, 0), await reap(bench.store, -1), await reap(bench.store, -Infinity)], [[], [], []])
  })

  it('case 83: three reapers at once find fifty expired runs: fifty are lost, each once', async (t) => {
    const task = bench.task()
    await expired(task, Array.from({ length: 50 }, (_, index) => String(index)))
    const reapers = Array.from({ length: 3 }, () => spawn(process.execPath, [join(import.meta.dirname, 'fixture-reaper.ts'), bench.url], { stdio: ['pipe', 'pipe', 'inherit'] }))
    t.after(() => reapers.forEach((reaper) => reaper.kill('SIGKILL')))
    await Promise.all(reapers.map(({ stdout }) => once(stdout, 'data')))

    for (const { stdin } of reapers) stdin.end('go')
    const reaped = (await Promise.all(reapers.map(({ stdout }) => stdout.setEncoding('utf8').toArray()))).flatMap((chunks) => JSON.parse(chunks.join('')) as string[])

    assert.deepEqual([reaped.length, new Set(reaped).size], [50, 50])
    const { runs, attempts } = await bench.recorded(task)
    assert.deepEqual([attempts.length, new Set(attempts.map(({ task_key }) => task_key)).size], [50, 50])
    assert.ok(attempts.every(({ outcome, attempt }) => outcome === 'lost' && attempt === 1))
    assert.ok(runs.every(({ status, attempt }) => status === 'pending' && attempt === 1))
  })
})

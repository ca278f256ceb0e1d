/** Of any number that want the same run at the same time, one gets it: within a process, and between processes. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { claim } from '../../src/store/claim.ts'
import { complete, fail } from '../../src/store/close.ts'
import { eachLedger, everybodyDied, nobodyDied, request } from '../support/ledgers.ts'

const run = promisify(execFile)

eachLedger('race', (bench) => {
  const reasons = (outcomes: Awaited<ReturnType<typeof claim>>[]) => outcomes.map((outcome) => (outcome.status === 'claimed' ? 'claimed' : outcome.reason)).toSorted()
  const winnerOf = (outcomes: Awaited<ReturnType<typeof claim>>[]) => outcomes.find((outcome) => outcome.status === 'claimed')

  it('case 38: of ten that claim a new key at once exactly one claims', async () => {
    const task = bench.task()

    const outcomes = await Promise.all(Array.from({ length: 10 }, () => claim(bench.store, request(task), nobodyDied)))

    assert.deepEqual(reasons(outcomes), ['claimed', ...Array<string>(9).fill('held')])
    assert.equal((await bench.row(`${task}:one`))['instance_id'], winnerOf(outcomes)?.instanceId)
  })

  it('of ten that claim a pending key at once exactly one claims', async () => {
    const task = bench.task()
    await fail(bench.store, await bench.claim(request(task)), 'error', {}, 0)

    const outcomes = await Promise.all(Array.from({ length: 10 }, () => claim(bench.store, request(task), nobodyDied)))

    assert.deepEqual(reasons(outcomes), ['claimed', ...Array<string>(9).fill('held')])
    assert.deepEqual([winnerOf(outcomes)?.attempt, (await bench.row(`${task}:one`))['attempt']], [2, 2])
  })

  it('of ten that claim windows of one concurrency key at once exactly one claims', async () => {
    const task = bench.task()

    const outcomes = await Promise.all(Array.from({ length: 10 }, (_, label) => claim(bench.store, request(task, String(label)), nobodyDied)))

    assert.deepEqual(reasons(outcomes), ['claimed', ...Array<string>(9).fill('overlap')])
  })

  it('of ten that take over from a dead owner at once exactly one does, and one death is recorded', async () => {
    const task = bench.task()
    const dead = await bench.claim(request(task))
    await bench.age(dead.taskKey)

    const outcomes = await Promise.all(Array.from({ length: 10 }, () => claim(bench.store, request(task), nobodyDied)))

    assert.deepEqual(reasons(outcomes), ['claimed', ...Array<string>(9).fill('held')])
    assert.equal(winnerOf(outcomes)?.attempt, 2)
    assert.deepEqual(await bench.outcomes(dead.taskKey), ['lost'])
  })

  it('of ten that find the holder of their concurrency key dead exactly one claims, and one death is recorded', async () => {
    const task = bench.task()
    const dead = await bench.claim(request(task, 'dead'))
    const isDead = (owner: { pid: number | null }) => owner.pid === 1
    await bench.store.db.updateTable('task_runs').set({ pid: 1 }).where('task_key', '=', dead.taskKey).execute()

    const outcomes = await Promise.all(Array.from({ length: 10 }, (_, label) => claim(bench.store, request(task, String(label)), isDead)))

    assert.deepEqual(reasons(outcomes), ['claimed', ...Array<string>(9).fill('overlap')])
    assert.deepEqual(await bench.outcomes(dead.taskKey), ['lost'])
  })

  it('case 90: sixteen claimers in two processes: every window is claimed exactly once', async () => {
    const task = bench.task()
    const windows = Array.from({ length: 25 }, (_, index) => index + 1)

    const processes = await Promise.all([1, 2].map(() => run(process.execPath, [join(import.meta.dirname, 'fixture-claimer.ts'), bench.url, task, String(windows.length), '8'])))

    const won = processes.flatMap(({ stdout }) => JSON.parse(stdout) as number[])
    assert.deepEqual(won.toSorted((a, b) => a - b), windows)
    const { runs, attempts } = await bench.recorded(task)
    assert.deepEqual([runs.map(({ status, attempt }) => `${String(status)} ${String(attempt)}`), attempts], [windows.map(() => 'completed 1'), []])
    assert.equal(new Set(runs.map(({ fence }) => String(fence))).size, windows.length, 'no fence was handed out twice')
  })

  it('a claim that finds everybody dead does not take a run from the living twice', async () => {
    const task = bench.task()
    const first = await bench.claim(request(task, 'one', { maxAttempts: 50 }))

    const outcomes = await Promise.all(Array.from({ length: 5 }, () => claim(bench.store, request(task), everybodyDied)))

    const claimed = outcomes.filter((outcome) => outcome.status === 'claimed')
    const standing = (await Promise.all([first, ...claimed].map((one) => complete(bench.store, one, {})))).filter(Boolean)
    assert.equal(standing.length, 1, 'one of them holds the run at the end')
    assert.equal((await bench.attempts(first.taskKey)).length, claimed.length, 'each of the others was closed as lost')
  })
})

/** A window is recorded as pending once, and what is recorded already stays as it is. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { complete } from '../../src/store/close.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { readRun } from '../../src/store/read-run.ts'
import { cutConnection, interrupted, once } from '../support/failing-store.ts'
import { eachLedger, hourFrom, request } from '../support/ledgers.ts'

eachLedger('queue', (bench) => {
  it('a new key becomes a pending run that is due, with its window, and nobody holds it', async () => {
    const window = hourFrom('2026-09-20T10:00:00.454Z', 'Asia/Shanghai')
    const asked = request(bench.task(), 'one', { window, maxAttempts: 5 })

    assert.equal(await queueRun(bench.store, asked), true)

    const run = await readRun(bench.store, asked.taskKey)
    assert.deepEqual([run?.status, run?.due, run?.attempt, run?.maxAttempts, run?.instanceId, run?.startedAt, run?.heartbeatAt], ['pending', true, 0, 5, null, null, null])
    assert.deepEqual([run?.windowStart, run?.windowEnd, run?.windowZone, run?.concurrencyKey], [window.start, window.end, 'Asia/Shanghai', asked.task])
  })

  it('of ten that queue a key at once one does, and there is one run', async () => {
    const asked = request(bench.task())

    const answers = await Promise.all(Array.from({ length: 10 }, () => queueRun(bench.store, asked)))

    assert.deepEqual(answers.toSorted(), [...Array<boolean>(9).fill(false), true])
    assert.equal((await bench.recorded(asked.task)).runs.length, 1)
  })

  it('a key in any state is left as it is', async () => {
    const task = bench.task()
    const keys = ['processing', 'completed', 'queued'].map((label) => request(task, label, { concurrencyKey: null }))
    await bench.claim(keys[0]!)
    await complete(bench.store, await bench.claim(keys[1]!), {})
    await queueRun(bench.store, keys[2]!)
    const before = await bench.recorded(task)

    const answers = []
    for (const key of keys) answers.push(await queueRun(bench.store, key))

    assert.deepEqual([answers, await bench.recorded(task)], [[false, false, false], before])
  })

  it('an answer that was lost does not make it a second run, nor an error', async () => {
    const asked = request(bench.task())

    await assert.rejects(queueRun(interrupted(bench.store, once('before transaction', cutConnection)), request(bench.task())), /injected/, 'nothing was written: the caller must know')
    const cut = { ...bench.store, transaction: interrupted(bench.store, once('after transaction', cutConnection)).transaction }
    assert.equal(await queueRun(cut, asked), false)

    assert.equal((await bench.recorded(asked.task)).runs.length, 1)
  })

  it('a queued run is taken up with its first attempt', async () => {
    const asked = request(bench.task())
    await queueRun(bench.store, asked)

    const claimed = await bench.claim(asked)

    assert.deepEqual([claimed.attempt, claimed.fence], [1, 1n])
  })
})

/** Worker processes that are killed at random: every run is done, within its attempts, and no two of a key ever at once. */
import assert from 'node:assert/strict'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger } from '../../src/index.ts'
import { iso, ledgerOn, newFolder } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'
import { livedElsewhere } from '../support/elsewhere.ts'

const WORKER = join(import.meta.dirname, 'fixture-queue-worker.ts')
const WORKERS = 3
const RUNS = 300
const KEYS = 20
const KILLS = Number(process.env['RUNLEDGER_RACE_KILLS'] ?? 4)
const MOST_ATTEMPTS = 30

const cache = newFolder()

eachDatabase('killed workers', (db) => {
  const ledger = ledgerOn(db)

  it(`case 109: ${KILLS} of ${WORKERS} workers are killed over ${RUNS} runs of ${KEYS} keys: all are done, none of a key at the same time as another`, async (t) => {
    const folder = join(cache, db.name)
    mkdirSync(folder)
    const enqueuer = await openLedger(ledger.url)
    await enqueuer.enqueueMany('work', Array.from({ length: RUNS }, (_, nth) => ({ key: String(nth), queue: 'work', payload: { key: String(nth % KEYS) }, concurrencyKey: `key-${nth % KEYS}`, maxAttempts: MOST_ATTEMPTS, backoff: '1ms' })))
    await enqueuer.close()
    const workers: ChildProcess[] = []
    t.after(() => workers.forEach((worker) => worker.kill('SIGKILL')))
    const start = async () => {
      const worker = fork(WORKER, [ledger.url, 'work', folder], { stdio: 'inherit', env: { ...process.env, NODE_COMPILE_CACHE: cache } })
      workers.push(worker)
      await once(worker, 'message')
      return worker
    }
    let alive = await Promise.all(Array.from({ length: WORKERS }, start))

    for (let kills = 0; kills < KILLS; kills++) {
      await sleep(300)
      const victim = alive.shift()!
      // Every second one looks as if it had lived on another host, so that its leases must run out.
      if (kills % 2 === 0) await livedElsewhere(ledger.sql, `pid = ${victim.pid}`)
      victim.kill('SIGKILL')
      alive = [...alive, await start()]
    }
    for (const deadline = performance.now() + 90_000; Number((await ledger.sql(`select count(*) as n from task_runs where status <> 'completed'`))[0]!['n']) > 0; await sleep(100)) assert.ok(performance.now() < deadline, 'it goes on')
    for (const worker of alive) worker.kill('SIGTERM')
    await Promise.all(alive.map(async (worker) => worker.exitCode ?? once(worker, 'exit')))

    assert.equal(existsSync(join(folder, 'meetings')) ? readFileSync(join(folder, 'meetings'), 'utf8') : '', '', 'two of a key were at work at the same time')
    await noTwoAtOnce()
    const [{ n }] = (await ledger.sql(`select count(*) as n from task_runs where attempt > ${MOST_ATTEMPTS}`)) as [{ n: number }]
    assert.equal(Number(n), 0)
  })

  /** By the database's clock: of each key an attempt began after the one before had ended, and under a greater fence. */
  async function noTwoAtOnce(): Promise<void> {
    const rows = await ledger.sql(`select r.concurrency_key, h.task_key, h.attempt, h.fence, h.started_at, h.ended_at from task_run_history h join task_runs r on r.task_key = h.task_key where h.outcome <> 'released'`)
    for (const [key, attempts] of Map.groupBy(rows, (row) => String(row['concurrency_key']))) {
      const inOrder = attempts.toSorted((a, b) => Number(a['fence']) - Number(b['fence']))
      for (const [index, attempt] of inOrder.entries()) {
        const earlier = inOrder[index - 1]
        if (earlier) assert.ok(Date.parse(iso(earlier['ended_at'])) <= Date.parse(iso(attempt['started_at'])) && Number(earlier['fence']) < Number(attempt['fence']), `${key}: ${String(attempt['task_key'])} began before ${String(earlier['task_key'])} had ended`)
      }
    }
  }
})

/** Workers that are killed at random, with reapers running: everything is done in the end, and never two things at once. */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, it } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { bundled } from '../support/bundled.ts'
import { iso, ledgerOn, newFolder } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'
import { livedElsewhere } from '../support/elsewhere.ts'

const WORKER = 'fixture-worker.ts'
const WORKERS = 3
const WINDOWS = 24
const KILLS = Number(process.env['RUNLEDGER_RACE_KILLS'] ?? 8)
const MOST_ATTEMPTS = 50

const programs = bundled(import.meta.dirname, WORKER)
const meetings = newFolder()
before(() => once(programs.spawn(WORKER, ['sqlite::memory:', 'warm', '0'], 'ignore'), 'exit'))

eachDatabase('killed holders', (db) => {
  const ledger = ledgerOn(db)

  /** A worker that has another in its place when it is killed, until it ends by itself. */
  class Post {
    readonly done: Promise<void>
    worker!: ChildProcess

    constructor(t: TestContext, folder: string) {
      this.done = this.#fill(folder)
      t.after(() => this.worker.kill('SIGKILL'))
    }

    async #fill(folder: string): Promise<void> {
      for (;;) {
        this.worker = programs.fork(WORKER, [ledger.url, 'work', String(WINDOWS), folder])
        const [code, signal] = (await once(this.worker, 'exit')) as [number | null, NodeJS.Signals | null]
        if (signal === 'SIGKILL') continue
        assert.deepEqual([code, signal], [0, null])
        return
      }
    }
  }

  const holder = async () => (await ledger.sql(`select pid, instance_id from task_runs where status = 'processing'`))[0]

  /**
   * Kills the worker that holds the run just now, and that is stopped first, so that it does not end its work meanwhile; every
   * second one looks as if it had lived on another host, so that its lease must run out.
   */
  async function killHolder(posts: readonly Post[], elsewhere: boolean): Promise<boolean> {
    const found = await holder()
    const post = posts.find(({ worker }) => worker.pid === Number(found?.['pid']))
    if (post === undefined || found === undefined) return false
    if (elsewhere) await livedElsewhere(ledger.sql, `instance_id = '${String(found['instance_id'])}'`)
    post.worker.kill('SIGSTOP')
    if ((await holder())?.['instance_id'] !== found['instance_id']) {
      post.worker.kill('SIGCONT')
      return false
    }
    post.worker.kill('SIGKILL')
    return true
  }

  it(`${KILLS} holders of ${WINDOWS} runs are killed: every run completes within its attempts, and no two were ever processing at once`, async (t) => {
    const folder = join(meetings, db.name)
    mkdirSync(folder)
    const reapers = [1, 2].map(() => ledger.start(t, ['reap', '--every', '200ms']))
    const posts = Array.from({ length: WORKERS }, () => new Post(t, folder))
    const done = Promise.all(posts.map((post) => post.done))
    for (let kills = 0; kills < KILLS && !(await Promise.race([done.then(() => true), sleep(5 + Math.random() * 30)])); ) if (await killHolder(posts, kills % 2 === 0)) kills++
    writeFileSync(join(folder, 'killed'), '')
    await done
    for (const reaper of reapers) reaper.process.kill('SIGTERM')
    await Promise.all(reapers.map(({ end }) => end))

    const runs = await ledger.sql('select task_key, status, attempt from task_runs')
    assert.equal(runs.length, WINDOWS)
    for (const { task_key, status, attempt } of runs) assert.ok(status === 'completed' && Number(attempt) <= MOST_ATTEMPTS, `${String(task_key)} ${String(status)} after ${String(attempt)}`)
    const lost = await ledger.sql(`select count(*) as times from task_attempts where outcome = 'lost'`)
    assert.ok(Number(lost[0]!['times']) >= 1, 'somebody was killed at work')
    assert.equal(existsSync(join(folder, 'meetings')) ? readFileSync(join(folder, 'meetings'), 'utf8') : '', '', 'two were at work at the same time')
    await oneAfterTheOther()
  })

  /**
   * By the database's clock the attempts of the concurrency key begin and end in the order of their fences. That each begins after
   * the end of the one before is not asked of the clock: a claim reads it before the index lets it in.
   */
  async function oneAfterTheOther(): Promise<void> {
    const rows = await ledger.sql(`select task_key, attempt, fence, started_at, ended_at from task_run_history where outcome <> 'conflict' order by fence`)
    const attempts = rows.map(({ task_key, attempt, fence, started_at, ended_at }) => ({ name: `${String(task_key)} attempt ${String(attempt)}`, fence: Number(fence), from: Date.parse(iso(started_at)), to: Date.parse(iso(ended_at)) }))
    for (const [index, { name, from, to, fence }] of attempts.entries()) {
      const earlier = attempts[index - 1]
      assert.ok(earlier === undefined || (earlier.from <= from && earlier.to <= to && earlier.fence < fence), `${name} (fence ${fence}) began or ended before ${earlier?.name} (fence ${earlier?.fence})`)
    }
    assert.deepEqual(await ledger.sql('select sum(attempt) as begun from task_runs'), [{ begun: attempts.length }], 'attempts begun are attempts recorded')
  }
}, { atOnce: true })

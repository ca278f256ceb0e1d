/** case 63: PgBouncer in transaction mode: no statement of the ledger relies on the session that an earlier one was sent on. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { LedgerError } from '../../src/model/errors.ts'
import { openLedger, type Ledger } from '../../src/runtime/ledger.ts'
import type { Checkup } from '../../src/model/checkup.ts'
import { doctor } from '../../src/runtime/doctor.ts'
import { migrate, migrationStatus } from '../../src/runtime/schema.ts'
import { onlyOn } from '../support/only-on.ts'
import { unprivilegedUser } from '../support/private-postgres.ts'

onlyOn('postgres', 'transaction pooler', (db) => {
  let pooler: Pooler
  let ledger: Ledger
  let later: Ledger
  before(async () => {
    pooler = await startPooler(await db.url())
    await migrate(pooler.url)
    ledger = await openLedger(pooler.url)
    later = await openLedger(pooler.url, { clock: { offsetMs: 120_000 } })
  })
  after(async () => {
    await Promise.allSettled([ledger?.close(), later?.close()])
    await pooler?.stop()
  })

  it('case 63: a worker behind a pooler hears no notification and forgets its statements, and does every run once by its poll', async (t) => {
    const executions: string[] = []
    await ledger.enqueueMany('pooled', Array.from({ length: 200 }, (_, nth) => ({ key: String(nth), ...(nth % 10 === 0 && { concurrencyKey: 'pooled-k' }) })))
    const { promise, resolve } = Promise.withResolvers<void>()
    const worker = await ledger.worker({ poll: '100ms', handlers: { pooled: (_payload, run) => void executions.push(run.taskKey) }, onEvent: ({ event }) => void (event === 'completed' && worker.status().completed === 200 && resolve()) })
    t.after(() => worker.stop())

    await promise

    assert.deepEqual([executions.length, new Set(executions).size], [200, 200])
  })

  it('case 63: migrates, and finds nothing left to do', async () => {
    assert.deepEqual(await migrate(pooler.url), [])
    assert.ok((await migrationStatus(pooler.url)).every(({ appliedAt }) => appliedAt !== null))
  })

  it('case 63: claims, renews, meets conflicts, fails, retries and completes', async () => {
    const launch = { task: 'news', key: 'a', maxAttempts: 3, backoff: 0 }
    const first = await ledger.claim(launch)
    assert.ok(first.status === 'claimed')
    await first.heartbeat()
    const conflict = await ledger.claim(launch)
    await first.fail('broken')
    const [due] = await ledger.due('news')
    const second = await ledger.takeUp(due!, launch)
    assert.ok(second.status === 'claimed')
    await second.complete()

    assert.deepEqual([conflict.status, second.attempt], ['conflict', 2])
    assert.deepEqual((await ledger.show('news:a')).history.map(({ outcome }) => outcome), ['conflict', 'failed', 'completed'])
  })

  it('case 63: doctor tells that it stands in between, and that nothing relies on a session', async () => {
    const found = new Map<string, Checkup>()
    for await (const checkup of doctor(pooler.url)) found.set(checkup.check, checkup)
    assert.match(found.get('pooler')!.said, /^a pooler \(such as PgBouncer\) stands in between/)
    assert.deepEqual([...found.values()].filter(({ state }) => state === 'problem'), [])
  })

  it('case 63: reaps', async () => {
    const lost = await ledger.claim({ task: 'lost', key: 'a' })
    assert.ok(lost.status === 'claimed')
    assert.deepEqual((await later.reap()).map(({ run }) => run.taskKey), ['lost:a'])
    await assert.rejects(lost.complete(), { code: 'LEASE_LOST' })
  })

  it('case 65: a launch that waits gets its turn by asking, since no notification would reach it here', async () => {
    const holder = await ledger.claim({ task: 'turn', key: 'a' })
    assert.ok(holder.status === 'claimed')
    const waiting = ledger.claim({ task: 'turn', key: 'b', overlap: 'wait', waitTimeout: '20s' })
    await sleep(1_500) // Its polls are as far apart as they get.
    await holder.complete()
    const completedAt = performance.now()
    assert.equal((await waiting).status, 'claimed')
    assert.ok(performance.now() - completedAt < 5_000)
  })

  it('case 63: lets one of many simultaneous launches claim, through fewer sessions than launches', async () => {
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => ledger.claim({ task: 'race', key: 'a' })))
    assert.equal(outcomes.filter(({ status }) => status === 'claimed').length, 1)
  })

  it('case 63: is told in words, and asked once, when the database behind it does not exist', async () => {
    const nowhere = pooler.url.replace(/\/[^/?]+\?/, '/no_such_database?')
    await assert.rejects(openLedger(nowhere, { connectTimeout: '5s' }), (error: LedgerError) => error.facts['retryable'] === false && error.message.includes('the database does not exist'))
  })

  it('case 63: claims on where a session has never heard of the statement that another one was told to remember', async (t) => {
    const other = await openLedger(pooler.url)
    t.after(() => other.close())
    const outcomes = await Promise.all(Array.from({ length: 60 }, (_, n) => (n % 2 === 0 ? ledger : other).claim({ task: `often-${n}`, key: 'a' })))
    assert.deepEqual(outcomes.filter(({ status }) => status !== 'claimed'), [])
  })
})

interface Pooler {
  readonly url: string
  stop(): Promise<void>
}

/** On a Unix socket, with two sessions for everybody: who is served next to whom changes all the time. */
async function startPooler(server: string): Promise<Pooler> {
  const { hostname, port, username, password, pathname } = new URL(server)
  const folder = mkdtempSync(join(tmpdir(), 'runledger-pooler-'))
  const config = join(folder, 'pgbouncer.ini')
  const target = `host=${hostname} port=${port} user=${username}${password === '' ? '' : ` password=${password}`}`
  writeFileSync(config, `[databases]\n* = ${target}\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = ${folder}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n`)
  const user = unprivilegedUser()
  for (const path of [folder, config]) if (user.uid !== undefined) chownSync(path, user.uid, user.gid!)
  const bouncer = spawn('pgbouncer', ['-q', config], { ...user, cwd: folder, env: { PATH: `${process.env['PATH']}:/usr/sbin` }, stdio: 'ignore' })
  const ended = once(bouncer, 'exit')
  const url = `postgres://${username}@localhost:6432${pathname}?host=${folder}`
  while (!(await answers(url))) {
    assert.equal(bouncer.exitCode, null, 'pgbouncer does not start')
    await sleep(20)
  }
  return {
    url,
    async stop() {
      bouncer.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true })
    },
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client(url)
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}

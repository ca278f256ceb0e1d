/** Settings of a whole server that change under the ledger: read-only, and another time zone. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WorkRun } from '../../src/index.ts'
import { openLedger } from '../../src/runtime/ledger.ts'
import { migrate } from '../../src/runtime/schema.ts'
import { killSessions, userUrl, type TestServer } from '../support/each-server.ts'
import { onlyOn } from '../support/only-on.ts'
import { privateServer, type PrivateServer } from '../support/private-server.ts'
import { startFixture } from '../support/fixture-process.ts'
import { startWorker } from '../support/workers.ts'

onlyOn('postgres', 'server settings', (db) => {
  let url: string
  before(async () => {
    url = await db.url()
    await migrate(url)
  })

  readOnlyTests(db, () => url, async (on) => {
    await db.admin(`begin read write; alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = ${on ? 'on' : 'off'}; commit`, url)
    await killSessions(db, url) // It is for new sessions.
  })
})

for (const name of ['mariadb', 'mysql'] as const) {
  onlyOn(name, 'server settings', (db) => {
    let server: PrivateServer
    let url: string
    before(async () => {
      server = await privateServer(name)
      await db.admin('create database ledger', server.url)
      url = await userUrl(db, new URL('/ledger', server.url).href, 'secret') // An administrator may write to a read-only server.
      await migrate(url)
    })
    after(() => server?.remove())

    readOnlyTests(db, () => url, async (on) => {
      await db.admin(`set global read_only = ${on ? 1 : 0}`, server.url)
    })

    it('sessions that the server ends while they are idle cost a job nothing', async (t) => {
      await db.admin('set global wait_timeout = 1', server.url)
      t.after(() => db.admin('set global wait_timeout = 28800', server.url))
      const ledger = await openLedger(url, { heartbeats: 'loop' })
      t.after(() => ledger.close())
      const outcome = await ledger.run({ task: 'idle', key: 'a', lease: '30s', heartbeat: '10s' }, () => sleep(2_200))
      assert.equal(outcome.status, 'completed')
    })

    it('an sql_mode is as good as any other, but for the one under which values cannot be quoted', async (t) => {
      const [{ mode } = {}] = await db.admin('select @@global.sql_mode as mode', server.url)
      t.after(() => db.admin(`set global sql_mode = '${String(mode)}'`, server.url))
      for (const other of ['', 'ANSI_QUOTES,PIPES_AS_CONCAT,IGNORE_SPACE', 'TRADITIONAL']) {
        await db.admin(`set global sql_mode = '${other}'`, server.url)
        const ledger = await openLedger(url, { heartbeats: 'loop' })
        const outcome = await ledger.run({ task: 'mode', key: `it's "${other}"` }, () => {})
        await ledger.close()
        assert.equal(outcome.status, 'completed', other)
      }
      await db.admin(`set global sql_mode = 'NO_BACKSLASH_ESCAPES'`, server.url)
      await assert.rejects(openLedger(url), { code: 'DATABASE_UNAVAILABLE', message: /NO_BACKSLASH_ESCAPES/ })
    })

    it('case 43: instants are the same for every host, whatever the zones of server and hosts', async (t) => {
      await db.admin(`set global time_zone = '+05:45'`, server.url)
      const at = '2026-03-08T07:30:00Z'

      const claiming = await startFixture(t, 'fault/fixture-zone.ts', [url, 'zones', at, 'claim'], { TZ: 'America/New_York' }).says('instants')
      const reading = await startFixture(t, 'fault/fixture-zone.ts', [url, 'zones', at, 'read'], { TZ: 'Asia/Tokyo' }).says('instants')
      const [{ heartbeat, age, start } = {}] = await db.admin(
        `select unix_timestamp(convert_tz(heartbeat_at, '+00:00', @@session.time_zone)) as heartbeat, timestampdiff(microsecond, heartbeat_at, utc_timestamp(6)) / 1e6 as age, cast(window_start as char) as start from task_runs where task_name = 'zones'`,
        url,
      )

      assert.deepEqual([claiming['offset'], reading['offset']], [300, -540], 'the hosts have zones of their own')
      assert.deepEqual(reading['instants'], claiming['instants'])
      const [windowStart, windowEnd, , heartbeatAt] = claiming['instants'] as number[]
      assert.deepEqual([windowStart, windowEnd], [Date.parse('2026-03-08T07:00:00Z'), Date.parse('2026-03-08T08:00:00Z')])
      assert.match(String(start), /^2026-03-08 07:00:00/)
      assert.ok(Math.abs(Number(heartbeat) * 1000 - heartbeatAt!) < 2, 'SQL and client see one heartbeat')
      const ageSeenHere = (Date.now() - heartbeatAt!) / 1000
      assert.ok(Math.abs(ageSeenHere - Number(age)) < 2 && Number(age) >= 0, `age ${String(age)} s by SQL, ${ageSeenHere} s by the client`)
    })
  })
}

/** case 59 */
function readOnlyTests(db: TestServer, url: () => string, setReadOnly: (on: boolean) => Promise<void>): void {
  it('case 59: a read-only database refuses a launch by name, nothing is started and nothing recorded', async (t) => {
    await setReadOnly(true)
    t.after(() => setReadOnly(false))
    const ledger = await openLedger(url(), { connectTimeout: '100ms' })
    t.after(() => ledger.close())

    await assert.rejects(ledger.run({ task: 'refused', key: 'a' }, () => assert.fail('the job was started')), { code: 'DATABASE_UNAVAILABLE', message: /read-only/ })

    assert.deepEqual(await ledger.runs({ task: 'refused' }), [])
  })

  it('case 59: a worker refuses to start on a read-only database, and says why', async (t) => {
    await setReadOnly(true)
    t.after(() => setReadOnly(false))
    const ledger = await openLedger(url(), { connectTimeout: '100ms' })
    t.after(() => ledger.close())

    await assert.rejects(ledger.worker({ handlers: { idle: () => {} } }), { code: 'DATABASE_UNAVAILABLE', message: /read-only/ })
  })

  it('case 59: a worker whose database turns read-only says so though it has nothing to do, and afterwards does what came meanwhile, each run once', async (t) => {
    const ledger = await openLedger(url(), { heartbeats: 'loop' })
    t.after(() => ledger.close())
    const done: string[] = []
    const { worker, until, ended, events } = await startWorker(t, ledger, { queues: ['turns'], handlers: { turns: (_: unknown, run: WorkRun) => void done.push(run.taskKey) } })
    await until(({ event }) => event === 'connected')

    await setReadOnly(true)
    await until((event) => event.event === 'degraded' && /read.?only/i.test(String(event.problem))) // That it was cut off may be said before.
    await sleep(1_000)
    assert.equal(worker.status().state, 'degraded')
    assert.equal(events.filter(({ event }) => event === 'connected').length, 1, 'it stays degraded')
    await setReadOnly(false)
    await ledger.enqueueMany('turns', ['a', 'b', 'c'].map((key) => ({ key, queue: 'turns' })))
    await ended('completed', 3)

    assert.deepEqual([worker.status().state, done.toSorted()], ['connected', ['turns:a', 'turns:b', 'turns:c']])
    assert.deepEqual(await db.admin(`select distinct status, attempt from task_runs where task_name = 'turns'`, url()), [{ status: 'completed', attempt: 1 }])
  })

  it('case 59: a run whose database is read-only for a while goes on under the same fence and is completed', async (t) => {
    const beats = new EventEmitter()
    const ledger = await openLedger(url(), { heartbeats: 'loop', onHeartbeatError: (error) => beats.emit('missed', error) })
    t.after(() => ledger.close())
    const claim = await ledger.claim({ task: 'surprised', key: 'a', lease: '5s', heartbeat: '100ms' })
    assert.ok(claim.status === 'claimed')
    claim.onRenewed(() => beats.emit('renewed'))

    const missed = once(beats, 'missed')
    await setReadOnly(true)
    await missed
    await setReadOnly(false)
    await once(beats, 'renewed')
    await claim.complete()

    const { run, history } = await ledger.show(claim.taskKey)
    assert.deepEqual([run?.status, run?.attempt, run?.fence, history.length], ['completed', 1, claim.fence, 1])
    assert.equal((await db.admin(`select count(*) as n from task_runs where task_name = 'surprised'`, url()))[0]?.['n'], 1)
  })
}

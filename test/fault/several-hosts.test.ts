/** Several servers in one URL: whoever cannot be reached, does not answer or may not write is passed over. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { after, before, it } from 'node:test'
import { monotonicMs } from '../../src/runtime/heart.ts'
import { openLedger } from '../../src/runtime/ledger.ts'
import { migrate } from '../../src/runtime/schema.ts'
import { makeScratchLedger } from '../../src/runtime/scratch-ledger.ts'
import { eachServerLedger } from '../support/each-server.ts'
import { faultProxy, type FaultProxy } from '../support/fault-proxy.ts'
import { startFixture } from '../support/fixture-process.ts'
import { notBehindPooler } from '../support/databases.ts'
import { Bench } from '../support/ledgers.ts'
import { onlyOn } from '../support/only-on.ts'
import { privateServer } from '../support/private-server.ts'

eachServerLedger('several hosts', (bench) => {
  let first: FaultProxy
  let second: FaultProxy
  before(async () => {
    first = await faultProxy(bench.url)
    second = await faultProxy(bench.url)
  })
  after(() => Promise.all([first.close(), second.close()]))

  const bothUrl = () => bench.url.replace(/@[^/]*/, `@127.0.0.1:${first.port},127.0.0.1:${second.port}`)

  for (const mode of ['refuse', 'blackhole'] as const) {
    it(`case 61: the second is taken when the first cannot be reached (${mode})`, async (t) => {
      first.mode = mode
      t.after(() => {
        first.mode = 'up'
        first.reset()
      })
      const openedAt = monotonicMs()
      const ledger = await openLedger(bothUrl(), { connectTimeout: '6s', heartbeats: 'loop' })
      t.after(() => ledger.close())
      const outcome = await ledger.run({ task: bench.task(), key: 'a' }, () => {})
      assert.equal(outcome.status, 'completed')
      assert.ok(monotonicMs() - openedAt < 5_500, 'half of the patience is the most that one of two may cost')
    })
  }

  it('case 61: a ledger for throwing away is made, and removed, where the first cannot be reached', async (t) => {
    first.mode = 'refuse'
    t.after(() => void (first.mode = 'up'))
    const scratch = await makeScratchLedger(bothUrl())
    const ledger = await openLedger(scratch.url, { heartbeats: 'loop' })
    const outcome = await ledger.run({ task: bench.task(), key: 'a' }, () => {})
    await ledger.close()
    await scratch.remove()
    assert.equal(outcome.status, 'completed')
    await assert.rejects(openLedger(scratch.url, { connectTimeout: '1s' }))
  })

  it('case 61: an owner whose server goes away renews and completes its run through the other one, and back again', async (t) => {
    const task = bench.task()
    const owner = startFixture(t, 'fault/fixture-job.ts', [bothUrl(), task, 'a', '20s'])
    const { claimed: fence } = await owner.says('claimed')
    await owner.says('renewed')
    for (const [gone, back] of [[first, second], [second, first]] as const) {
      back.mode = 'up'
      gone.mode = 'refuse'
      gone.reset()
      await owner.says('renewed')
      await owner.says('renewed') // The one before may have been on its way already.
    }
    owner.send('complete')
    assert.deepEqual(await owner.says('completed'), { completed: fence })
    second.mode = 'up'
    assert.deepEqual(await bench.outcomes(`${task}:a`), [])
  })
}, { atOnce: true })

onlyOn('postgres', 'several hosts', (db) => {
  const bench = new Bench(db)
  before(() => bench.prepare())
  after(() => bench.close())

  it('case 61: what is announced is heard through the second when the first cannot be reached', { skip: notBehindPooler('it listens') }, async (t) => {
    const first = await faultProxy(bench.url)
    t.after(() => first.close())
    first.mode = 'refuse'
    const store = await bench.openStore({}, bench.url.replace('@', `@127.0.0.1:${first.port},`))
    const told = new EventEmitter()
    const listener = store.listen((queue) => told.emit(queue ?? 'listening'))
    t.after(() => listener.close())
    await once(told, 'listening')
    const heard = once(told, 'mail')
    await store.announce('mail')
    await heard
  })
})

for (const name of ['mariadb', 'mysql'] as const) {
  onlyOn(name, 'several hosts', (db) => {
    it('case 61: a replica that is read-only is passed over', async (t) => {
      const replica = await privateServer(name)
      t.after(() => replica.remove())
      const url = new URL(await db.url())
      const place = new URL(replica.url).host
      const database = url.pathname.slice(1)
      for (const server of [url.href, replica.url]) {
        await db.admin(`create database if not exists ${database}; create user ${database}@'%' identified by 'secret'; grant all on ${database}.* to ${database}@'%'`, server)
      }
      t.after(() => db.admin(`drop user ${database}@'%'`, url.href))
      await db.admin('set global read_only = 1', replica.url)
      const theirs = `mysql://${database}:secret@${place},${url.host}/${database}`
      await migrate(theirs)
      const ledger = await openLedger(theirs, { heartbeats: 'loop' })
      t.after(() => ledger.close())
      assert.equal((await ledger.run({ task: 'replicated', key: 'a' }, () => {})).status, 'completed')
      assert.equal((await db.admin('select 1 from task_runs', url.href)).length, 1)
    })
  })
}

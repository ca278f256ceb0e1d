/** A COMMIT whose answer never comes, or comes as an error: what is done is done once, and nothing is assumed. */
import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Claim } from '../../src/runtime/claim.ts'
import { openLedger, type Ledger } from '../../src/runtime/ledger.ts'
import { eachServerLedger, session } from '../support/each-server.ts'
import { faultProxy, NEVER_ARRIVES, REPLY_LOST, type FaultProxy } from '../support/fault-proxy.ts'

const INSERT_OF_CLAIM = /insert into [^;]*task_runs/
const COMMIT = /^commit$/
const CLOSING_UPDATE = /^update \S*task_runs\S* set .status/

const IN_LOCK_WAIT = `select 1 from information_schema.innodb_trx t join information_schema.processlist p on p.id = t.trx_mysql_thread_id where p.db = database() and t.trx_state = 'LOCK WAIT'`

/** Rolled back for certain, in the words of each server; a cluster says so at COMMIT too. */
const ROLLED_BACK = { postgres: ['40001', '40P01'], mariadb: ['1213', '1020'], mysql: ['1213', '1205'] }

/** Nothing is carried out, and it may be later. */
const DISK_FULL = { postgres: ['53100', '58030', '53200'], mariadb: ['1021', '1114', '1026'], mysql: ['1021', '1114', '1041'] }

eachServerLedger('unknown commit', (bench, db) => {
  const { name } = db
  let proxy: FaultProxy
  let ledger: Ledger
  let hasty: Ledger

  before(async () => {
    proxy = await faultProxy(bench.url)
    ledger = await openLedger(proxy.url, { heartbeats: 'loop' })
    hasty = await openLedger(proxy.url, { heartbeats: 'loop', connectTimeout: 0 })
  })
  after(async () => {
    await ledger.close()
    await hasty.close()
    await proxy.close()
  })

  /** Resolves when this many statements on the database wait for a lock. */
  async function locksAwaited(count: number): Promise<void> {
    const waiting = {
      postgres: `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      mariadb: IN_LOCK_WAIT,
      mysql: IN_LOCK_WAIT,
    }[name]
    // InnoDB takes a new picture only when nobody has looked at the last one for a tenth of a second.
    while ((await db.admin(waiting, bench.url)).length < count) await sleep(150)
  }

  async function claimed(launch: { task: string; key: string; maxAttempts?: number; backoff?: number }): Promise<Claim> {
    const claim = await ledger.claim(launch)
    assert.ok(claim.status === 'claimed', claim.status)
    return claim
  }

  it('a claim whose answer was lost is recognised as ours', async () => {
    const task = bench.task()
    const harmed = proxy.harm(INSERT_OF_CLAIM, REPLY_LOST)
    const claim = await claimed({ task, key: 'a' })
    assert.equal(harmed(), 1)
    const { run, history } = await ledger.show(claim.taskKey)
    assert.deepEqual([run?.instanceId, run?.attempt, run?.fence], [ledger.instance.id, 1, claim.fence])
    assert.equal(history.length, 1)
    await claim.complete()
  })

  it('a claim that is carried out only after its launch has looked for it is recognised as ours', async (t) => {
    const task = bench.task()
    await ledger.run({ task, key: 'before' }, () => {})
    const other = await session(bench.url)
    t.after(() => other.end())
    await other.query('begin')
    await other.query(`update task_fences set counter = counter where scope = '${task}'`)
    const arrived = new EventEmitter()
    proxy.onStatement = (text) => void (INSERT_OF_CLAIM.test(text) && arrived.emit('claim'))
    t.after(() => void (proxy.onStatement = () => undefined))

    const sent = once(arrived, 'claim')
    const claiming = claimed({ task, key: 'a' })
    await sent
    await locksAwaited(1)
    const sentAgain = once(arrived, 'claim')
    proxy.reset()
    await sentAgain
    await locksAwaited(2)
    await other.query('commit')

    const claim = await claiming
    const { run } = await ledger.show(claim.taskKey)
    assert.deepEqual([run?.instanceId, run?.attempt, run?.fence], [ledger.instance.id, 1, claim.fence])
    await claim.complete()
    assert.deepEqual(await bench.outcomes(claim.taskKey), [])
  })

  it('a claim that never arrived is made once', async () => {
    const task = bench.task()
    const harmed = proxy.harm(INSERT_OF_CLAIM, NEVER_ARRIVES)
    const claim = await claimed({ task, key: 'a' })
    assert.equal(harmed(), 1)
    assert.deepEqual([claim.attempt, claim.fence], [1, 1n])
    await claim.complete()
  })

  it('a retry whose COMMIT was carried out unheard is the second attempt, not the third', async () => {
    const task = bench.task()
    await (await claimed({ task, key: 'a', maxAttempts: 3, backoff: 0 })).fail('broken')
    const harmed = proxy.harm(COMMIT, REPLY_LOST)
    const claim = await claimed({ task, key: 'a', maxAttempts: 3 })
    assert.equal(harmed(), 1)
    assert.equal(claim.attempt, 2)
    await claim.complete()
    assert.deepEqual(await bench.outcomes(claim.taskKey), ['failed'])
  })

  it('a launch that cannot learn whether it claimed starts nothing, and the run is recovered', async () => {
    const task = bench.task()
    const harmed = proxy.harm(INSERT_OF_CLAIM, REPLY_LOST)
    await assert.rejects(hasty.run({ task, key: 'a' }, () => assert.fail('the job was started')), { code: 'DATABASE_UNAVAILABLE' })
    assert.equal(harmed(), 1)
    await bench.age(`${task}:a`)
    const claim = await claimed({ task, key: 'a' })
    assert.deepEqual([claim.attempt, await bench.outcomes(claim.taskKey)], [2, ['lost']])
    await claim.complete()
  })

  for (const [title, close, outcomes] of [
    ['a completion', (claim: Claim) => claim.complete(), []],
    ['a failure', (claim: Claim) => claim.fail('broken'), ['failed']],
    ['a release', (claim: Claim) => claim.release(), ['released']],
  ] as const) {
    for (const statement of [CLOSING_UPDATE, COMMIT]) {
      if (outcomes.length === 0 && statement === COMMIT) continue // It is one statement that commits by itself.
      it(`${title} whose ${statement === COMMIT ? 'COMMIT' : 'UPDATE'} was carried out unheard is recorded once`, async () => {
        const claim = await claimed({ task: bench.task(), key: 'a' })
        const harmed = proxy.harm(statement, REPLY_LOST)
        await close(claim)
        assert.equal(harmed(), 1)
        assert.deepEqual(await bench.outcomes(claim.taskKey), outcomes)
        assert.notEqual((await bench.row(claim.taskKey))['status'], 'processing')
      })
    }
  }

  it('a conflict whose record was carried out unheard is recorded once', async () => {
    const held = await claimed({ task: bench.task(), key: 'a' })
    const harmed = proxy.harm(/insert into \S*task_attempts/, REPLY_LOST)
    assert.equal((await ledger.claim({ task: held.task, key: 'a' })).status, 'conflict')
    assert.equal(harmed(), 1)
    assert.deepEqual(await bench.outcomes(held.taskKey), ['conflict held'])
    await held.complete()
  })

  for (const [title, act, status] of [
    ['a cancel', (key: string) => ledger.operator.cancel(key), 'cancelled'],
    ['a release by hand', (key: string) => ledger.operator.release(key, { force: true }), 'released'],
  ] as const) {
    it(`${title} whose COMMIT was carried out unheard is done once, recorded once, and told as done`, async () => {
      const held = await claimed({ task: bench.task(), key: 'a', maxAttempts: 3, backoff: 0 })
      if (status === 'cancelled') await held.fail('broken')
      const harmed = proxy.harm(COMMIT, REPLY_LOST)
      assert.equal((await act(held.taskKey)).status, status)
      assert.equal(harmed(), 1)
      assert.equal((await ledger.operator.actions({ taskKey: held.taskKey })).length, 1)
    })
  }

  it('case 36: a claim that the server rolled back at COMMIT is made again, as the first attempt', async () => {
    const [error] = ROLLED_BACK[name]
    const task = bench.task()
    await (await claimed({ task, key: 'a', maxAttempts: 3, backoff: 0 })).fail('broken')
    const harmed = proxy.harm(COMMIT, { execute: 'rollback', error: error! })
    const claim = await claimed({ task, key: 'a' })
    assert.equal(harmed(), 1)
    assert.deepEqual([claim.attempt, (await bench.row(claim.taskKey))['attempt']], [2, 2])
    await claim.complete()
  })

  it('case 36: a claim that took effect though its COMMIT reported a deadlock is not run blindly', async () => {
    const [error] = ROLLED_BACK[name]
    const task = bench.task()
    const harmed = proxy.harm(INSERT_OF_CLAIM, { error: error! })
    const outcome = await ledger.run({ task, key: 'a' }, (claim) => claim.heartbeat())
    assert.equal(harmed(), 1)
    if (outcome.status === 'completed') return
    assert.deepEqual([outcome.status, 'reason' in outcome && outcome.reason], ['conflict', 'held'])
    await bench.age(`${task}:a`)
    assert.equal((await ledger.run({ task, key: 'a' }, () => {})).status, 'completed')
  })

  it('case 71: a completion that deadlocks or cannot be serialized is tried again, and the job is not', async () => {
    for (const error of ROLLED_BACK[name]) {
      let begun = 0
      let harmed = () => 0
      const outcome = await ledger.run({ task: bench.task(), key: error }, () => {
        begun++
        harmed = proxy.harm(CLOSING_UPDATE, { execute: null, error }, 3)
      })
      assert.deepEqual([outcome.status, begun, harmed()], ['completed', 1, 3])
    }
  })

  it('a launch on a full disk is refused by name and starts nothing, and a completion is tried again until there is room', async () => {
    for (const error of DISK_FULL[name]) {
      let harmed = proxy.harm(INSERT_OF_CLAIM, { execute: null, error })
      await assert.rejects(hasty.run({ task: bench.task(), key: error }, () => assert.fail('the job was started')), { code: 'DATABASE_UNAVAILABLE', message: /disk|memory/ })
      assert.equal(harmed(), 1)
      const outcome = await ledger.run({ task: bench.task(), key: error }, () => {
        harmed = proxy.harm(CLOSING_UPDATE, { execute: null, error }, 2)
      })
      assert.deepEqual([outcome.status, harmed()], ['completed', 2])
    }
  })
}, { atOnce: true })

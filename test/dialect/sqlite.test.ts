/** What is true of SQLite alone: one file, one writer at a time, and a driver that stops the world while it waits. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { before, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { monotonicMs } from '../../src/runtime/heart.ts'
import { openLedger, type Ledger } from '../../src/runtime/ledger.ts'
import type { LedgerOptions } from '../../src/runtime/ledger-options.ts'
import { openStore } from '../../src/runtime/open-store.ts'
import type { Db } from '../../src/store/tables.ts'
import { startFixture } from '../support/fixture-process.ts'
import { onlyOn } from '../support/only-on.ts'

const PROCESSES = 8
const LEASE_MS = 8_000
const WINDOWS = Number(process.env['RUNLEDGER_SQLITE_WINDOWS'] ?? 40)

onlyOn('sqlite', 'SQLite', (db) => {
  let url: string
  const path = () => url.slice('sqlite:'.length)
  before(async () => {
    url = await db.url()
    await (await openLedger(url)).close()
  })

  it('the primary key of a table that is not the ledger\'s is not ours', async (t) => {
    const store = await openStore(await db.url())
    t.after(() => store.close())
    await sql`create table audit (id integer primary key)`.execute(store.db)
    const insert = () => sql`insert into audit values (1)`.execute(store.db)
    await insert()
    assert.deepEqual(await insert().catch((error: unknown) => store.diagnose(error)), { kind: 'duplicate', constraint: 'audit_id' })
  })

  it(`case 97: ${PROCESSES} processes that open an empty file at once claim each window once, and never hear that it is busy`, async (t) => {
    const empty = await db.url()
    const claimers = Array.from({ length: PROCESSES }, () => startFixture(t, 'dialect/fixture-claimer.ts', [empty, String(WINDOWS)]))
    await Promise.all(claimers.map((claimer) => claimer.says('ready')))
    for (const claimer of claimers) claimer.send('go')
    const claimed = (await Promise.all(claimers.map((claimer) => claimer.says('claimed')))).flatMap((said) => said['claimed'] as string[])

    assert.deepEqual(claimed.toSorted(), Array.from({ length: WINDOWS }, (_, window) => `shared:window-${window}`).toSorted())
    assert.deepEqual(await db.admin('select status, attempt, count(*) as n from task_runs group by 1, 2', empty), [{ status: 'completed', attempt: 1, n: WINDOWS }])
    assert.deepEqual(await db.admin('select outcome, count(*) as n from task_attempts group by 1', empty), [{ outcome: 'conflict', n: WINDOWS * (PROCESSES - 1) }])
  })

  it('case 98: while another process holds the write lock for 4 s the event loop turns, claims wait and leases hold', async (t) => {
    const ledger = await open(t)
    const claim = await ledger.claim({ task: 'long', key: 'a', lease: '9s', heartbeat: '100ms' })
    assert.ok(claim.status === 'claimed')
    const writer = startFixture(t, 'dialect/fixture-writer.ts', [path(), '4000'])
    await writer.says('locked')
    const gaps = watchLoop(t)

    const waiting = await ledger.claim({ task: 'waiting', key: 'a' })
    await writer.says('unlocked')
    await claim.heartbeat()
    await claim.complete()

    assert.ok(waiting.status === 'claimed')
    assert.equal(claim.signal.aborted, false)
    assert.ok(gaps.longest() < 1000, `the event loop stood still for ${gaps.longest()} ms`)
    await waiting.complete()
  })

  it('case 80: an owner whose file stays locked stops before its lease ends', async (t) => {
    const ledger = await open(t, { heartbeats: 'loop' })
    const sentAt = monotonicMs()
    const claim = await ledger.claim({ task: 'locked-out', key: 'a', lease: LEASE_MS })
    assert.ok(claim.status === 'claimed')
    const writer = startFixture(t, 'dialect/fixture-writer.ts', [path()])
    await once(claim.signal, 'abort')
    const heldFor = monotonicMs() - sentAt
    await writer.says('locked')
    writer.send('let go')
    assert.ok(heldFor < LEASE_MS, `it stopped after ${heldFor} ms`)
  })

  it('case 71: a completion that meets a locked file is recorded once the lock is gone, and the job ran once', async (t) => {
    const ledger = await open(t)
    let begun = 0
    const outcome = await ledger.run({ task: 'busy', key: 'a' }, async () => {
      begun++
      await startFixture(t, 'dialect/fixture-writer.ts', [path(), '300']).says('locked')
    })
    assert.deepEqual([outcome.status, begun], ['completed', 1])
  })

  it('two ledgers of one process on one file wait for each other without standing still', async (t) => {
    const ledgers = [await open(t), await open(t)]
    const outcomes = await Promise.all(Array.from({ length: 40 }, (_, i) => ledgers[i % 2]!.run({ task: 'both', key: `k${i >> 1}`, overlap: 'allow' }, () => {})))
    assert.equal(outcomes.filter(({ status }) => status === 'completed').length, 20)
  })

  it('case 97: a transaction is the writer from its beginning, so that it never has to become one half way', async (t) => {
    const [ours, theirs] = [await openStore(url), await openStore(url)]
    t.after(() => Promise.all([ours.close(), theirs.close()]))
    const add = (db: Db, name: string) => db.insertInto('tasks').values({ task_name: name }).execute()
    await ours.transaction(async (tx) => {
      await tx.selectFrom('tasks').selectAll().execute()
      const error: unknown = await add(theirs.db, 'meanwhile').then(() => assert.fail('it wrote meanwhile'), (reason: unknown) => reason)
      assert.equal(theirs.diagnose(error).kind, 'transient')
      await add(tx, 'ours')
    })
    await add(theirs.db, 'theirs')
  })

  it('what is acknowledged is on the disk: every commit is flushed, in WAL mode, in a file for its owner and group', async (t) => {
    const store = await openStore(url)
    t.after(() => store.close())
    const pragma = async (name: string) => Object.values((await sql.raw<Record<string, unknown>>(`pragma ${name}`).execute(store.db)).rows[0]!)[0]
    assert.deepEqual([await pragma('journal_mode'), await pragma('synchronous'), await pragma('busy_timeout')], ['wal', 2, 0])
    assert.equal(statSync(path()).mode & 0o137, 0)
  })

  for (const [what, statement, kind] of [
    ['a file that may not be written', 'pragma query_only = on', 'refused'],
    ['a full disk', 'pragma max_page_count = 1', 'unavailable'],
  ] as const) {
    it(`${what} is ${kind}`, async (t) => {
      const store = await openStore(url)
      t.after(() => store.close())
      await sql.raw(statement).execute(store.db)
      const fill = () => store.db.insertInto('tasks').values({ task_name: what, schedule: 'x'.repeat(1_000_000) }).execute()
      const error: unknown = await fill().then(() => assert.fail('it was written'), (reason: unknown) => reason)
      assert.equal(store.diagnose(error).kind, kind)
    })
  }

  for (const [what, said, make] of [
    ['a text file', /is not a SQLite database/, (at: string) => writeFileSync(at, 'Dear ledger, '.repeat(100))],
    ['a folder', /it is a folder/, (at: string) => mkdirSync(at)],
  ] as const) {
    it(`${what} in place of the file is refused at once, and left as it is`, async () => {
      const at = join(dirname(path()), what)
      make(at)
      const before = statSync(at)
      await assert.rejects(openLedger(`sqlite:${at}`), { code: 'DATABASE_UNAVAILABLE', message: said })
      assert.deepEqual([statSync(at).size, statSync(at).mtimeMs], [before.size, before.mtimeMs])
    })
  }

  it('a value that SQLite does not have is refused, not shifted into the next parameter', async (t) => {
    const store = await openStore(url)
    t.after(() => store.close())
    await assert.rejects(sql`select ${new Date()} as a, ${2} as b`.execute(store.db), /parameter 1: cannot bind \[object Date\]/)
  })

  async function open(t: TestContext, options: LedgerOptions = {}): Promise<Ledger> {
    const ledger = await openLedger(url, options)
    t.after(() => ledger.close())
    return ledger
  }
})

/** Measures how long the event loop stands still at most. */
function watchLoop(t: TestContext): { longest(): number } {
  let [last, longest] = [monotonicMs(), 0]
  const timer = setInterval(() => {
    const now = monotonicMs()
    longest = Math.max(longest, now - last)
    last = now
  }, 10)
  t.after(() => clearInterval(timer))
  return { longest: () => longest }
}

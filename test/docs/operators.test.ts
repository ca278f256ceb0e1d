/** The SQL of docs/operators.md, run as it stands on every database, over a history that has an answer to each question. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, it } from 'node:test'
import { cron, migrate, openLedger, type Ledger } from '../../src/index.ts'
import { iso } from '../support/cli.ts'
import { eachDatabase, type Row } from '../support/databases.ts'

const PAGE = readFileSync(new URL('../../docs/operators.md', import.meta.url), 'utf8')

/** The statement under the question of this number. */
function statement(question: number): string {
  const section = PAGE.split(/^## /m).find((part) => part.startsWith(`${question}. `))
  const sql = /```sql\n([\s\S]*?)```/.exec(section ?? '')?.[1]
  assert.ok(sql, `question ${question} has a statement`)
  return sql
}

it('asks its questions in order, each with one statement', () => {
  const numbers = [...PAGE.matchAll(/^## (\d+)\. /gm)].map(([, number]) => Number(number))
  assert.deepEqual(numbers, Array.from({ length: 16 }, (_, index) => index + 1))
  assert.equal([...PAGE.matchAll(/```sql/g)].length, numbers.length)
})

eachDatabase("the operators' questions", (db) => {
  const ask = (question: number): Promise<Row[]> => db.admin(statement(question))

  before(async () => {
    const url = await db.url()
    await migrate(url)
    const ledger = await openLedger(url, { heartbeats: 'loop' })
    await makeHistory(ledger)
    await ledger.claim({ task: 'import', key: 'lost', overlap: 'allow' })
    await db.admin(`update task_runs set heartbeat_at = '2026-09-20T23:00:00' where task_key = 'import:lost'`)
    assert.equal((await ledger.reap()).length, 1)
    await leaveInDoubt(await ledger.claim({ task: 'import', key: 'stuck', overlap: 'allow' }))
    await makeWords(url)
    await ledger.close()
    await db.admin(`update task_runs set finished_at = '2026-09-20T23:00:00' where task_key = 'backup:night'`)
    await db.admin(`update task_runs set heartbeat_at = '2026-09-20T23:00:00' where task_key = 'import:stuck'`)
  })

  it('1: names the one that runs, with its holder', async () => {
    const rows = await ask(1)
    assert.deepEqual(rows.map((row) => row['task_key']).toSorted(), ['daily_news:2026-09-21-18:00', 'import:stuck'])
    assert.ok(rows.every((row) => row['pid'] === process.pid && Number(row['duration_seconds']) >= 0))
  })

  it('2: names what failed last night, and nothing that failed by day', async () => {
    assert.deepEqual((await ask(2)).map((row) => [row['task_key'], row['failure_reason'], row['exit_code']]), [['backup:night', 'exit', 3]])
  })

  it('3: names the window that was skipped, and the one in its way', async () => {
    assert.deepEqual((await ask(3)).map((row) => [row['task_key'], row['reason'], row['held_by_key'], row['held_by_pid']]), [
      ['daily_news:2026-09-22-18:00', 'overlap', 'daily_news:2026-09-21-18:00', process.pid],
    ])
  })

  it('4: names the attempt that was lost', async () => {
    assert.deepEqual((await ask(4)).map((row) => [row['task_key'], row['attempt'], row['pid']]), [['import:lost', 1, process.pid]])
  })

  it('5: measures the runs that completed', async () => {
    const [row] = await ask(5)
    assert.equal(Number(row!['runs']), 2)
    assert.ok(Number(row!['longest']) >= 0 && Number(row!['shortest']) <= Number(row!['average']))
  })

  it('6: counts who launched it again', async () => {
    assert.deepEqual((await ask(6)).map((row) => Number(row['refused'])), [2])
  })

  it('7: says when each task succeeded and is due', async () => {
    const news = (await ask(7)).find((row) => row['task_name'] === 'daily_news')
    assert.equal(Number(news!['running']), 1)
    assert.ok(news!['last_success_at'])
    assert.ok(news!['next_due_at'])
    const backup = (await ask(7)).find((row) => row['task_name'] === 'backup')
    assert.equal(Number(backup!['failures_in_a_row']), 2)
  })

  it('8: names the owner that stopped renewing', async () => {
    assert.deepEqual((await ask(8)).map((row) => [row['task_key'], Number(row['seconds_overdue']) > 0]), [['import:stuck', true]])
  })

  it('9: names what waits', async () => {
    assert.deepEqual((await ask(9)).map((row) => [row['task_key'], row['attempt']]), [['import:lost', 1]])
  })

  it('10: tells the story of one window', async () => {
    assert.deepEqual((await ask(10)).map((row) => [row['outcome'], row['reason']]), [
      ['completed', null],
      ['conflict', 'done'],
      ['conflict', 'done'],
    ])
  })

  it('11: shows the gap between two windows', async () => {
    assert.deepEqual((await ask(11)).map((row) => [iso(row['gap_from']), iso(row['gap_to'])]), [['2026-09-03T10:00:00.000Z', '2026-09-20T10:00:00.000Z']])
  })

  it('12: says what is expected of each task', async () => {
    const rows = await ask(12)
    assert.deepEqual(rows.map((row) => [row['task_name'], row['schedule'], row['zone'], row['grace_seconds'], row['catch_up']]), [
      ['daily_news', '0 18 * * *', 'Asia/Shanghai', null, null],
      ['report', '30 2 * * *', 'Europe/Berlin', 900, 'latest'],
    ])
    assert.ok(rows[0]!['schedule_set_at'] === null && rows[1]!['schedule_set_at'] !== null && rows.every((row) => row['expected_since'] !== null))
  })

  it('13: names the task that two crontabs launch differently, and no other', async () => {
    assert.deepEqual((await ask(13)).map((row) => [row['task_name'], row['schedule'], row['zone']]).toSorted(), [
      ['daily_news', '0 18 * * *', 'Asia/Shanghai'],
      ['daily_news', '0 18 * * *', 'UTC'],
    ])
  })

  it('14: tells what people did', async () => {
    assert.deepEqual((await ask(14)).map((row) => [row['action'], row['task_name'], row['because']]), [['set', 'report', 'OPS-12']])
  })

  it('15: counts what ended', async () => {
    assert.deepEqual((await ask(15)).map((row) => [row['task_name'], row['outcome'], row['reason'], Number(row['endings'])]), [
      ['backup', 'failed', 'exit', 2],
      ['daily_news', 'completed', '', 2],
    ])
  })

  it('16: names the effect in doubt, and not the one that is done', async () => {
    assert.deepEqual((await ask(16)).map((row) => [row['effect_key'], row['task_key'], row['attempt'], row['pid']]), [['import:stuck#charge', 'import:stuck', 1, process.pid]])
  })
})

/** A window done and launched twice more, one running with one refused beside it, two failures. */
async function makeHistory(ledger: Ledger): Promise<void> {
  const news = (day: string) => ({ task: 'daily_news', window: cron('0 18 * * *', 'Asia/Shanghai'), at: new Date(`${day}T10:00:00Z`), lease: '30d' })
  await ledger.run(news('2026-09-02'), () => {})
  await ledger.run(news('2026-09-20'), () => {})
  await ledger.claim(news('2026-09-20'))
  await ledger.claim(news('2026-09-20'))
  await ledger.claim(news('2026-09-21'))
  await ledger.claim(news('2026-09-22'))
  for (const key of ['night', 'day']) {
    const claim = await ledger.claim({ task: 'backup', key })
    assert.equal(claim.status, 'claimed')
    await claim.fail('disk full', { reason: 'exit', exitCode: 3 })
  }
}

/** A schedule learned from one crontab and another, one set by hand, and a count. */
async function makeWords(url: string): Promise<void> {
  const later = await openLedger(url, { heartbeats: 'loop', clock: { offsetMs: 120_000 } })
  await later.tasks.learn({ task: 'daily_news', window: cron('0 18 * * *', 'UTC') })
  await later.tasks.learn({ task: 'daily_news', window: cron('0 18 * * *', 'Asia/Shanghai') })
  await later.tasks.set('report', { schedule: cron('30 2 * * *', 'Europe/Berlin'), graceMs: 900_000, catchUp: 'latest' }, 'OPS-12')
  await later.tasks.measures()
  await later.close()
}

async function leaveInDoubt(claim: Awaited<ReturnType<Ledger['claim']>>): Promise<void> {
  assert.equal(claim.status, 'claimed')
  await claim.effect('mail', () => 'sent')
  await assert.rejects(claim.effect('charge', () => Promise.reject(new Error('no answer'))))
}

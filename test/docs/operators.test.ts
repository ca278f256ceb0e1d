/** The SQL of docs/operators.md, run as it stands on every database, over a history that has an answer to each question. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, it } from 'node:test'
import { cron, migrate, openLedger, type Ledger } from '../../src/index.ts'
import { eachDatabase, type Row } from '../support/databases.ts'

const PAGE = readFileSync(new URL('../../docs/operators.md', import.meta.url), 'utf8')

/** The statement under the question of this number. */
function statement(question: number): string {
  const section = PAGE.split(/^## /m).find((part) => part.startsWith(`${question}. `))
  const sql = /```sql\n([\s\S]*?)```/.exec(section ?? '')?.[1]
  assert.ok(sql, `question ${question} has a statement`)
  return sql
}

it('asks ten questions, each with one statement', () => {
  assert.deepEqual([...PAGE.matchAll(/^## (\d+)\. /gm)].map(([, number]) => Number(number)), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  assert.equal([...PAGE.matchAll(/```sql/g)].length, 10)
})

eachDatabase("the operators' ten questions", (db) => {
  const ask = (question: number): Promise<Row[]> => db.admin(statement(question))

  before(async () => {
    const url = await db.url()
    await migrate(url)
    const ledger = await openLedger(url, { heartbeats: 'loop' })
    await makeHistory(ledger)
    await ledger.claim({ task: 'import', key: 'lost', overlap: 'allow' })
    await db.admin(`update task_runs set heartbeat_at = '2026-09-20T23:00:00' where task_key = 'import:lost'`)
    assert.equal((await ledger.reap()).length, 1)
    await ledger.claim({ task: 'import', key: 'stuck', overlap: 'allow' })
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
    assert.equal(Number(row!['runs']), 1)
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
})

/** A window done and launched twice more, one running with one refused beside it, two failures. */
async function makeHistory(ledger: Ledger): Promise<void> {
  const news = (day: string) => ({ task: 'daily_news', window: cron('0 18 * * *', 'Asia/Shanghai'), at: new Date(`${day}T10:00:00Z`), lease: '30d' })
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

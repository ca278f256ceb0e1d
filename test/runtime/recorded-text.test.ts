/** Recording a failure never fails: whatever text an error has, however much of it, and whatever the column takes. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Claim } from '../../src/runtime/claim.ts'
import { ERROR_BYTES, OUTPUT_TAIL_BYTES } from '../../src/runtime/ending.ts'
import type { Ledger } from '../../src/runtime/ledger.ts'
import { readHistory } from '../../src/store/list-runs.ts'
import { readRun } from '../../src/store/read-run.ts'
import type { DatabaseName } from '../support/databases.ts'
import { eachLedger } from '../support/ledgers.ts'

const NASTY = `💥 café ${Buffer.from([0xff, 0xfe]).toString()} \0 \ud800 \x1b[31m`
const CLEANED = '💥 café �� ␀ � ␛[31m'

const narrow = (table: string) => `alter table ${table} modify error longtext character set utf8mb3, modify output_tail longtext character set utf8mb3`
/** Makes the text columns as narrow as an old table of this database may have them; the others have nothing narrower than Unicode. */
const narrowed: Record<DatabaseName, string> = {
  sqlite: 'select 1',
  postgres: 'select 1',
  mariadb: `${narrow('task_runs')}; ${narrow('task_attempts')}`,
  mysql: `${narrow('task_runs')}; ${narrow('task_attempts')}`,
}

eachLedger('recorded text', (bench) => {
  async function claimed(ledger: Ledger, maxAttempts?: number): Promise<Claim> {
    const outcome = await ledger.claim({ task: bench.task(), key: 'one', backoff: 0, ...(maxAttempts !== undefined && { maxAttempts }) })
    assert.ok(outcome.status === 'claimed')
    return outcome
  }

  it('case 48: emoji, broken UTF-8, NUL and escape sequences are stored readably, in the run and in its history', async () => {
    const claim = await claimed(await bench.open())

    await claim.fail(NASTY, { outputTail: NASTY })

    const run = await readRun(bench.store, claim.taskKey)
    const [line] = await readHistory(bench.store, claim.taskKey)
    assert.deepEqual([run?.status, run?.error, run?.outputTail, line?.error, line?.outputTail], ['failed', CLEANED, CLEANED, CLEANED, CLEANED])
  })

  it('case 49: an error of 20 MB is cut in bytes, says so, and leaves the process well', async () => {
    const claim = await claimed(await bench.open(), 2)
    const huge = new Error('💥'.repeat(5_000_000))
    const before = process.memoryUsage().rss

    await claim.fail(huge, { outputTail: 'é'.repeat(10_000_000) })

    assert.ok(process.memoryUsage().rss - before < 200 << 20, 'it is not copied over and over')
    const [line] = await readHistory(bench.store, claim.taskKey)
    assert.deepEqual([(await bench.row(claim.taskKey))['status'], (await bench.row(claim.taskKey))['attempt'], line?.outcome], ['pending', 1, 'failed'])
    assert.ok(Buffer.byteLength(line!.error!) <= ERROR_BYTES && Buffer.byteLength(line!.outputTail!) <= OUTPUT_TAIL_BYTES)
    assert.ok(/^Error: 💥+\[… \d+ bytes cut\]$/u.test(line!.error!), `${line!.error!.slice(0, 20)} … ${line!.error!.slice(-40)}`)
    assert.ok(/^\[… \d+ bytes cut\]é+$/.test(line!.outputTail!), `${line!.outputTail!.slice(0, 40)} … ${line!.outputTail!.slice(-20)}`)
  })

  it('what was thrown need not be an error, and may be as odd as it likes', async () => {
    const ledger = await bench.open()
    const revoked = Proxy.revocable({}, {})
    revoked.revoke()
    const unreadable = Object.defineProperty(new Error('x'), 'stack', { get: () => { throw new Error('no stack for you') } })
    for (const odd of [undefined, null, 42n, Symbol('s'), { code: 7 }, '', Object.create(null), unreadable, revoked.proxy]) {
      const claim = await claimed(ledger)
      await claim.fail(odd)
      assert.equal((await readRun(bench.store, claim.taskKey))?.status, 'failed')
    }
  })

  // The last of the suite: it narrows the columns.
  it('case 48: columns that take three bytes a character at most still get the failure recorded, with one attempt counted', async () => {
    for (const table of ['task_runs', 'task_attempts'] as const) await bench.store.db.deleteFrom(table).execute() // What is there already would not fit.
    await bench.db.admin(narrowed[bench.db.name])
    const ledger = await bench.open()
    const [failed, completed] = [await claimed(ledger, 2), await claimed(ledger)]

    await failed.fail(NASTY, { outputTail: NASTY })
    await completed.complete({ outputTail: NASTY })

    const [line, ...more] = await bench.attempts(failed.taskKey)
    assert.deepEqual([line?.['outcome'], more.length, (await bench.row(failed.taskKey))['attempt']], ['failed', 0, 1])
    for (const text of [line?.['error'], line?.['output_tail'], (await bench.row(completed.taskKey))['output_tail']]) assert.match(String(text), /^(💥|�) café �� ␀ � ␛\[31m$/u)
    assert.equal((await bench.row(completed.taskKey))['status'], 'completed')
  })
})

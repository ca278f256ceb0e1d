/** What the database gives back need not be what we wrote: odd rows are shown as they are, odd results refused by name, and no end of an attempt violates a CHECK. */
import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { it } from 'node:test'
import fc from 'fast-check'
import { isLedgerError } from '../../src/index.ts'
import { eachLedger } from '../support/ledgers.ts'
import { anyText, jsonLike } from './bad-input.ts'

const INPUTS = Math.ceil(Number(process.env['RUNLEDGER_FUZZ'] ?? 10_000) / 200)

/** As long as the column is; a NUL or half a character is no text to a database. */
const stored = (length: number) => anyText.map((text) => text.replaceAll('\0', '').toWellFormed().replace(/[\ud800-\udfff]/g, '').slice(0, length))
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })

eachLedger('odd rows', (bench) => {
  it('odd texts in a row are read, listed and explained without an error', async () => {
    const ledger = await bench.open()
    const odd = fc.record({ window_zone: maybe(stored(60)), host: maybe(stored(200)), launcher: maybe(stored(90)), process_identity: maybe(stored(190)), error: maybe(stored(5_000)), output_tail: maybe(stored(5_000)) })
    await fc.assert(
      fc.asyncProperty(odd, stored(180), async (texts, zone) => {
        const task = bench.task()
        const claim = await ledger.claim({ task, key: 'a', maxAttempts: 2, backoff: 0, lease: '1h' })
        assert.ok(claim.status === 'claimed')
        await bench.store.db.updateTable('task_runs').set(texts).where('task_key', '=', claim.taskKey).execute()
        await bench.store.db.insertInto('tasks').values({ task_name: task, zone: zone.slice(0, 60), schedule: zone }).execute()
        assert.equal((await ledger.runs({ task }))[0]?.host, texts.host)
        assert.equal((await ledger.show(claim.taskKey)).run?.error, texts.error)
        await ledger.operator.why(claim.taskKey)
        await ledger.operator.why(task)
        const other = await ledger.claim({ task, key: 'a' })
        assert.equal('reason' in other && other.reason, 'held', 'odd texts prove no death')
        await claim.fail('x')
        assert.equal((await bench.outcomes(claim.taskKey)).at(-1), 'failed')
      }),
      { numRuns: INPUTS, endOnFailure: true },
    )
  })

  it('a recorded result that is no JSON any more is refused by name; the effect is not performed again', async () => {
    const ledger = await bench.open()
    for (const [n, result] of ['', '{', 'undefined', "{'a':1}", '\u001b[31m'].entries()) {
      const claim = await ledger.claim({ task: bench.task(), key: String(n) })
      assert.ok(claim.status === 'claimed')
      await claim.effect('mail', () => 1)
      await bench.store.db.updateTable('task_effects').set({ result }).where('task_key', '=', claim.taskKey).execute()
      const again = () => claim.effect('mail', () => assert.fail('performed again'))
      await assert.rejects(again, { code: 'RESULT_NOT_RECORDABLE' })
      await ledger.effects.resolve(`${claim.taskKey}#mail`, { verdict: 'done', by: 'ann', result: 2 })
      assert.equal(await again(), 2)
      await claim.complete()
    }
  })

  it('whatever a job throws, prints or exits with, its attempt is recorded as failed', async () => {
    const ledger = await bench.open()
    const endings = fc.tuple(fc.oneof(jsonLike, anyText), maybe(anyText), maybe(fc.oneof(fc.integer(), fc.integer({ min: 0, max: 255 }))))
    await fc.assert(
      fc.asyncProperty(endings, async ([thrown, outputTail, exitCode]) => {
        const claim = await ledger.claim({ task: bench.task(), key: 'a', lease: '1h' })
        assert.ok(claim.status === 'claimed')
        await claim.fail(thrown, { outputTail, exitCode }).catch((error: unknown) => assert.ok(isLedgerError(error), inspect(error)))
        const row = await bench.row(claim.taskKey)
        assert.deepEqual([row['status'], row['failure_reason'], row['exit_code']], ['failed', 'error', exitCode])
      }),
      { numRuns: INPUTS, endOnFailure: true },
    )
  })
})

/** case 107: what people type is a value, never SQL. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { eachLedger } from '../support/ledgers.ts'

const WORDS = [
  `'; delete from task_runs;--`,
  `"; drop table task_runs;--`,
  `\\'; drop table task_runs; -- `.trim(),
  `\\"; drop table task_runs;#`,
  'x`y`; drop table task_runs',
  `'||(select version())||'`,
  `$1 ? :name %s \${7} {{x}} /* */ -- #`,
  `'); rollback; drop table task_runs;--`,
]

eachLedger('injection', (bench) => {
  /** Every table and view, with the rows of the tables. */
  async function tables(): Promise<unknown> {
    const counted = await Promise.all((['task_runs', 'task_attempts', 'task_fences', 'tasks'] as const).map(async (table) => [table, (await bench.store.db.selectFrom(table).selectAll().execute()).length]))
    const found = await bench.store.db.introspection.getTables()
    return { counted: Object.fromEntries(counted) as Record<string, number>, names: found.map(({ name }) => name).toSorted() }
  }

  for (const word of WORDS) {
    it(`case 107: a task of the name ${word} is refused before any SQL`, async () => {
      const ledger = await bench.open()
      const before = await tables()
      await assert.rejects(ledger.claim({ task: word, key: 'a' }), { code: 'INVALID_OPTION' })
      assert.deepEqual(await ledger.runs({ task: word }), [])
      assert.deepEqual(await ledger.due(word), [])
      await ledger.reap()
      assert.deepEqual(await tables(), before)
    })

    it(`case 107: ${word} is a key, an error and an output like any other`, async () => {
      const ledger = await bench.open()
      const task = bench.task()
      const before = (await tables()) as { counted: Record<string, number>; names: string[] }
      const first = await ledger.claim({ task, key: word, maxAttempts: 2, backoff: 0 })
      assert.ok(first.status === 'claimed')
      await first.heartbeat()
      assert.equal((await ledger.claim({ task, key: word })).status, 'conflict')
      await first.fail(word, { outputTail: word })
      const second = await ledger.claim({ task, key: word })
      assert.ok(second.status === 'claimed')
      await second.complete({ outputTail: word })

      const { run, history } = await ledger.show(`${task}:${word}`)
      assert.deepEqual([run?.taskKey, run?.status, run?.outputTail], [`${task}:${word}`, 'completed', word])
      assert.deepEqual(history.map(({ outcome, error }) => [outcome, error]), [['conflict', null], ['failed', word], ['completed', null]])
      const { counted: { task_runs = 0, task_attempts = 0, task_fences = 0, tasks = 0 }, names } = before
      assert.deepEqual(await tables(), { counted: { task_runs: task_runs + 1, task_attempts: task_attempts + 2, task_fences: task_fences + 1, tasks }, names })
    })
  }
})

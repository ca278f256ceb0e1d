/** A counter that is read, and written a little later: launches that wait for their turn lose no update. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { ledgerOn, newFolder, sh } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

const LANES = 4
const LAUNCHES = Number(process.env['RUNLEDGER_RACE_UPDATES'] ?? 4)

eachDatabase('lost update', (db) => {
  const ledger = ledgerOn(db)

  it(`${LANES} lanes of ${LAUNCHES} launches under --overlap wait count to ${LANES * LAUNCHES}`, async () => {
    const counter = join(newFolder(), 'counter')
    writeFileSync(counter, '0')
    const job = sh(`n=$(cat ${counter}); sleep 0.0$((n % 5)); echo $((n + 1)) >${counter}`)
    const lane = async () => {
      for (let n = 0; n < LAUNCHES; n++) assert.equal((await ledger.run(['exec', '--task', 'count', '--overlap', 'wait', '--wait-timeout', '60s', ...job])).code, 0)
    }
    await Promise.all(Array.from({ length: LANES }, lane))
    assert.equal(Number(readFileSync(counter, 'utf8')), LANES * LAUNCHES)
    assert.deepEqual(await ledger.sql(`select status, count(*) as runs, count(distinct fence) as fences, max(fence) as last from task_runs group by status`), [{ status: 'completed', runs: LANES * LAUNCHES, fences: LANES * LAUNCHES, last: LANES * LAUNCHES }])
    assert.deepEqual(await ledger.sql(`select * from task_attempts`), [])
  })
})

/** `runledger verify`: one line a finding, and an exit code for a monitor. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { embeddedLedger } from '../support/cli.ts'

describe('runledger verify', () => {
  const ledger = embeddedLedger()

  it('exits 0 where every promise holds, 1 with a line a finding where one does not, and 64 for a word', async () => {
    for (const key of ['a', 'b']) await ledger.run(['exec', '--task', 'verified', '--key', key, '--', 'true'])
    const well = await ledger.run(['verify'])
    assert.deepEqual([well.code, well.stdout], [0, 'every promise holds: 2 runs, 0 lines of history, 0 effects, 1 scopes of fences\n'])

    await ledger.sql(`update task_runs set fence = 1; update task_runs set attempt = 2`)

    const ill = await ledger.run(['verify'])
    assert.deepEqual([ill.code, ill.stdout.split('\n').length], [1, 5])
    assert.match(ill.stdout, /^promise 7: verified:a is completed in attempt 2, and by its history in attempt 1$/m)
    assert.match(ill.stdout, /^3 findings: 2 runs/m)
    const { stdout } = await ledger.run(['verify', '--json', '--task', 'verified'])
    const found = stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as object)
    assert.deepEqual(found[0], { promise: 7, task_name: 'verified', key: 'verified:a', problem: 'is completed in attempt 2, and by its history in attempt 1' })
    assert.equal((await ledger.run(['verify', 'everything'])).code, 64)
  })
})

/** `runledger prune`: what it says, what it refuses, and how it ends when it is told to. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { openStore } from '../../src/runtime/open-store.ts'
import { embeddedLedger } from '../support/cli.ts'
import { oldKey, oldWindows } from '../support/old-runs.ts'

describe('runledger prune', () => {
  const ledger = embeddedLedger()
  before(async () => {
    const store = await openStore(ledger.url)
    await oldWindows(store, 'hourly', 0, 2)
    await oldWindows(store, 'many', 0, 3000)
    for (const label of ['a', 'b', 'c']) await oldKey(store, 'keyed', label)
    await store.close()
  })
  const count = async (task: string) => Number((await ledger.sql(`select count(*) as n from task_runs where task_name = '${task}'`))[0]!['n'])

  it('says a line a task in JSON, and with --dry-run takes nothing', async () => {
    const { code, stdout } = await ledger.run(['prune', '--older-than', '30d', '--task', 'hourly', '--dry-run', '--json'])
    const said = { task_name: 'hourly', dry_run: true, runs: 2, attempts: 0, effects: 0, refusals: 0, payloads: 0, pruned_before: null, kept_newest: 1, kept_keyed: 0, kept_in_doubt: 0, interrupted: false }
    assert.deepEqual([code, JSON.parse(stdout)], [0, said])
    assert.equal(await count('hourly'), 3)
    assert.deepEqual(JSON.parse((await ledger.run(['prune', '--older-than', '30d', '--task', 'hourly', '--json'])).stdout), { ...said, dry_run: false, pruned_before: '2026-03-01T02:00:00.000Z' })
  })

  it('tells people what stays and how to have it go, and who did it is recorded', async () => {
    const { stdout } = await ledger.run(['prune', '--older-than', '30d', '--task', 'keyed', '--by', 'ann'])
    assert.match(stdout, /keyed {2,}0 .*2 under a key of their own stay \(--keyed\)/)
    await ledger.run(['prune', '--older-than', '30d', '--task', 'keyed', '--keyed', '--by', 'ann', '--because', 'done with it'])
    assert.deepEqual(await ledger.sql(`select acted_by, because, task_name from task_actions where task_name = 'keyed'`), [{ acted_by: 'ann', because: 'done with it', task_name: 'keyed' }])
    assert.equal((await ledger.run(['prune', '--older-than', '30d', '--task', 'keyed'])).stdout, 'nothing is old enough to go\n')
  })

  it('case 46: SIGTERM ends it between two batches, with 143; started again it goes on', async (t) => {
    const running = ledger.start(t, ['prune', '--older-than', '30d', '--task', 'many', '--batch', '5', '--json'])
    for (const deadline = Date.now() + 10_000; (await count('many')) === 3001 && Date.now() < deadline; );
    process.kill(running.pid, 'SIGTERM')
    const { code, stdout } = await running.end
    const left = await count('many')
    const { runs, interrupted } = JSON.parse(stdout) as { runs: number; interrupted: boolean }
    assert.deepEqual([code, interrupted, runs], [143, true, 3001 - left])
    assert.ok(left > 1, String(left))
    assert.equal((JSON.parse((await ledger.run(['prune', '--older-than', '30d', '--task', 'many', '--json'])).stdout) as { runs: number }).runs, left - 1)
  })

  for (const [what, args] of [['no age', []], ['an age in seconds', ['--older-than', '90s']], ['an age without unit', ['--older-than', '90']], ['a word', ['--older-than', '90d', 'hourly']], ['a batch too large', ['--older-than', '90d', '--batch', '5000']]] as const) {
    it(`${what} is one line and exit 64`, async () => {
      const { code, stderr, stdout } = await ledger.run(['prune', ...args])
      assert.deepEqual([code, stdout, stderr.trimEnd().split('\n').length], [64, '', 1])
    })
  }
})

/** `runledger doctor`: a line a look, and the exit code of the worst. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { embeddedLedger, run } from '../support/cli.ts'

describe('runledger doctor', () => {
  const ledger = embeddedLedger()

  it('exits 0 where all is well, 1 with a warning, 2 with a problem, and says what to do', async () => {
    await ledger.run(['exec', '--task', 'looked', '--key', 'a', '--', 'true'], { env: { RUNLEDGER_LAUNCHER: 'crontab' } })
    const well = await ledger.run(['doctor'])
    assert.deepEqual([well.code, well.stderr], [0, ''])
    assert.match(well.stdout, /^ok {7}launches of looked: .* crontab \(1\) in the last 7 days$/m)

    await ledger.sql(`insert into task_runs (task_key, task_name, status, available_at, created_at, attempt, max_attempts, instance_id, started_at, heartbeat_at, lease_seconds)
      values ('gone:a', 'gone', 'processing', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 1, 1, 'x', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 60)`)
    const warned = await ledger.run(['doctor', '--json'])
    assert.equal(warned.code, 1)
    const reaper = warned.stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, string>).find(({ check }) => check === 'reaper')!
    assert.deepEqual([Object.keys(reaper), reaper['state'], reaper['todo']], [['check', 'state', 'said', 'todo'], 'warning', 'a cron entry on any host: * * * * * runledger reap'])

    const dead = await run(['doctor', '--db', 'postgres://127.0.0.1:1/app', '--connect-timeout', '0s'])
    assert.deepEqual([dead.code, dead.stderr], [2, ''])
    assert.match(dead.stdout, /^problem {2}connection: .*nobody listens there\n {9}to do: /)
    assert.equal((await run(['doctor', '--db', 'nonsense'])).code, 64)
  })
})

/** Exit codes of the command line: each says one thing, and a job that must not run has not begun. */
import assert from 'node:assert/strict'
import { closeSync, copyFileSync, existsSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { eachDatabase, type DatabaseName } from '../support/databases.ts'
import { embeddedLedger, ledgerOn, newFolder, run, sh } from '../support/cli.ts'

describe('exit codes', () => {
  const ledger = embeddedLedger()
  const folder = newFolder()
  const marker = join(folder, 'marker')
  const job = sh(`touch ${marker}`)

  it("a job's own exit code is handed on and stands in the row", async () => {
    for (const code of [0, 1, 3, 64, 255]) {
      assert.equal((await ledger.run(['exec', '--task', `own-${code}`, ...sh(`exit ${code}`)])).code, code)
      assert.deepEqual(await ledger.sql(`select status, exit_code, failure_reason from task_runs where task_name = 'own-${code}'`), [
        { status: code === 0 ? 'completed' : 'failed', exit_code: code, failure_reason: code === 0 ? null : 'exit' },
      ])
    }
  })

  it('128 + n for a job that died of signal n, without runledger dying of it', async () => {
    for (const [name, code] of [['KILL', 137], ['TERM', 143], ['SEGV', 139]] as const) {
      const ran = await ledger.run(['exec', '--task', `signal-${name}`, ...sh(`kill -${name} $$`)])
      assert.deepEqual([ran.code, ran.signal], [code, null])
      assert.deepEqual(await ledger.sql(`select status, exit_code, failure_reason from task_runs where task_name = 'signal-${name}'`), [{ status: 'failed', exit_code: code, failure_reason: 'signal' }])
    }
  })

  it('0 for a conflict, or what --conflict-exit-code says; the job does not run again', async () => {
    const launch = ['exec', '--task', 'once', '--key', 'k', '--conflict-exit-code']
    assert.equal((await ledger.run([...launch, '17', ...sh('exit 0')])).code, 0)
    assert.equal((await ledger.run([...launch, '17', ...job])).code, 17)
    assert.equal((await ledger.run([...launch, '0', ...job])).code, 0)
    assert.equal((await ledger.run(['exec', '--task', 'once', '--key', 'k', ...job])).code, 0)
    assert.ok(!existsSync(marker))
  })

  it('124 for --timeout, after which nothing of the job is left', async (t) => {
    const running = ledger.start(t, ['exec', '--task', 'slow', '--timeout', '200ms', ...sh('sleep 60 & sleep 60')])
    assert.equal((await running.end).code, 124)
    assert.deepEqual(await ledger.sql(`select status, failure_reason, exit_code, error from task_runs where task_name = 'slow'`), [
      { status: 'failed', failure_reason: 'timeout', exit_code: 124, error: 'the job ran into --timeout' },
    ])
  })

  it('124 also when only SIGKILL ends the job', async () => {
    const ran = await ledger.run(['exec', '--task', 'deaf', '--timeout', '200ms', '--kill-after', '100ms', ...sh('trap "" TERM; while :; do sleep 0.05; done')])
    assert.equal(ran.code, 124)
  })

  it('126 for a command that cannot be executed, 127 for one that is not there; nothing is recorded', async () => {
    const plain = join(folder, 'plain')
    writeFileSync(plain, 'echo', { mode: 0o644 })
    for (const [command, code] of [[plain, 126], [folder, 126], ['no-such-command', 127], ['./no-such-file', 127], ['', 64]] as const) {
      const ran = await ledger.run(['exec', '--task', 'lost-command', '--', command])
      assert.deepEqual([ran.code, ran.stderr.split('\n').length], [code, 2], ran.stderr)
    }
    assert.deepEqual(await ledger.sql(`select * from task_runs where task_name = 'lost-command'`), [])
  })

  it('126 for a command that the system refuses after the claim; the run has failed', async () => {
    const busy = join(folder, 'busy')
    copyFileSync('/bin/true', busy)
    const writer = openSync(busy, 'r+') // ETXTBSY
    const ran = await ledger.run(['exec', '--task', 'busy', '--', busy])
    closeSync(writer)
    assert.equal(ran.code, 126)
    assert.deepEqual(await ledger.sql(`select status, exit_code from task_runs where task_name = 'busy'`), [{ status: 'failed', exit_code: 126 }])
  })

  it('1 for a key of which nothing is recorded', async () => {
    const ran = await ledger.run(['show', 'nothing:here'])
    assert.deepEqual([ran.code, ran.stdout], [1, ''])
    assert.match(ran.stderr, /^runledger: RUN_NOT_FOUND: .*"nothing:here".*\n$/)
  })

  it('64 for a command line that makes no sense', async () => {
    assert.equal((await run(['exec', '--task'])).code, 64)
  })
})

const NOWHERE: Record<DatabaseName, string> = {
  sqlite: 'sqlite:/dev/null/ledger.db',
  postgres: 'postgres://app@127.0.0.1:1/app',
  mariadb: 'mariadb://app@127.0.0.1:1/app',
  mysql: 'mysql://app@127.0.0.1:1/app',
}

eachDatabase('exit codes', (db) => {
  const ledger = ledgerOn(db)
  const marker = join(newFolder(), 'marker')
  const job = sh(`touch ${marker}`)

  it('69 when nobody is there, and the job was not started', async () => {
    const ran = await run(['exec', '--db', NOWHERE[db.name], '--connect-timeout', '300ms', '--task', 'a', ...job])
    assert.equal(ran.code, 69)
    assert.match(ran.stderr, /^runledger: DATABASE_UNAVAILABLE: [^\n]+\n$/)
    assert.ok(!existsSync(marker))
  })

  it('78 when the schema is ahead, and the job was not started', async () => {
    await ledger.sql(`insert into runledger_migrations (name, applied_at) select '9999-later', max(applied_at) from runledger_migrations`)
    const ran = await ledger.run(['exec', '--task', 'ahead', ...job])
    await ledger.sql(`delete from runledger_migrations where name = '9999-later'`)
    assert.equal(ran.code, 78)
    assert.match(ran.stderr, /^runledger: SCHEMA_AHEAD: [^\n]*9999-later[^\n]*\n$/)
    assert.ok(!existsSync(marker))
  })

  it('case 55: 70 when a constraint that is no key of ours refuses the claim, and the job was not started', async () => {
    await ledger.sql('create unique index stranger on task_runs (launcher)')
    const launch = (task: string) => ledger.run(['exec', '--task', task, ...job], { env: { RUNLEDGER_LAUNCHER: 'same' } })
    assert.equal((await launch('first')).code, 0)
    rmSync(marker)
    const ran = await launch('second')
    assert.equal(ran.code, 70)
    assert.match(ran.stderr, /^runledger: bug: [^\n]*(stranger|launcher)[^\n]*\n$/)
    assert.ok(!existsSync(marker))
  })
}, { atOnce: true })

/** `runledger metrics`: valid for a server, on stdout or in a file that is replaced at once. */
import assert from 'node:assert/strict'
import { chmodSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, it } from 'node:test'
import { iso, ledgerOn, newFolder, sh } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'
import { parseExposition } from '../support/exposition.ts'
import { awayFromTheHour } from '../support/hour.ts'

eachDatabase('metrics', (db) => {
  const ledger = ledgerOn(db)
  const folder = newFolder()

  before(async () => {
    await awayFromTheHour()
    await ledger.run(['exec', '--task', 'news', '--every', '1h', '--', 'true'])
    await ledger.run(['exec', '--task', 'news', '--every', '1h', '--', 'true'])
    await ledger.run(['exec', '--task', 'mail', ...sh('exit 3')])
    for (const table of ['task_runs', 'task_attempts']) {
      const column = table === 'task_runs' ? 'finished_at' : 'ended_at'
      await ledger.sql(`update ${table} set ${column} = '2026-09-20T10:00:03'`)
    }
    await ledger.sql(`update task_runs set started_at = '2026-09-20T10:00:00'`)
  })

  const series = (text: string) => new Map(parseExposition(text).flatMap((family) => family.samples.map(({ name, labels, value }) => [`${name} ${Object.values(labels).filter(Boolean).join(' ')}`, value])))

  it('says in the text format what ended, how long it took, what was refused, and when what is due', async () => {
    const { code, stdout, stderr } = await ledger.run(['metrics'])
    const found = series(stdout)
    const named = (name: string) => found.get(name)

    assert.deepEqual([code, stderr], [0, ''])
    assert.deepEqual(
      ['run_endings_total news completed', 'run_endings_total mail failed exit', 'run_duration_seconds_sum news', 'run_duration_seconds_count news', 'attempts_total mail failed exit', 'conflicts_total news done', 'runs news pending', 'expired_leases mail', 'effects_in_doubt mail'].map((name) => named(`runledger_${name}`)),
      [1, 1, 3, 1, 1, 1, 0, 0, 0],
    )
    const [row] = await ledger.sql(`select finished_at from task_runs where task_name = 'news'`)
    assert.equal(named('runledger_last_success_timestamp_seconds news'), Date.parse(iso(row!['finished_at'])) / 1000)
    assert.equal(named('runledger_next_due_timestamp_seconds news')! % 3600, 0)
    assert.ok(named('runledger_next_due_timestamp_seconds news')! > Date.now() / 1000)
  })

  it('--out replaces the file at once, readable for everybody, and leaves nothing beside it', async () => {
    const file = join(folder, 'runledger.prom')
    writeFileSync(file, 'old', { mode: 0o600 })
    const inode = statSync(file).ino

    const { code, stdout } = await ledger.run(['metrics', '--out', file], { under: ['sh', '-c', 'umask 077; exec "$@"', 'sh'] })

    assert.deepEqual([code, stdout, readdirSync(folder)], [0, '', ['runledger.prom']])
    assert.equal(statSync(file).mode & 0o777, 0o644)
    assert.notEqual(statSync(file).ino, inode, 'a reader that has opened the old one reads the old one to its end')
    assert.equal(series(readFileSync(file, 'utf8')).get('runledger_run_endings_total news completed'), 1)
  })

  it('a file that cannot be written, and a database that does not answer, leave what was there', async () => {
    const file = join(folder, 'kept.prom')
    writeFileSync(file, 'old')
    chmodSync(file, 0o644)

    const nowhere = await ledger.run(['metrics', '--out', join(folder, 'no/such/folder.prom')])
    const away = await ledger.run(['metrics', '--out', file, '--connect-timeout', '0s'], { env: { RUNLEDGER_DB: 'postgres://127.0.0.1:1/x' } })

    assert.deepEqual([nowhere.code, away.code, readFileSync(file, 'utf8')], [74, 69, 'old'])
    assert.match(nowhere.stderr, /^runledger: .*folder\.prom cannot be written: ENOENT/)
    assert.deepEqual(readdirSync(folder).filter((name) => name.startsWith('kept')), ['kept.prom'])
  })
}, { atOnce: true })

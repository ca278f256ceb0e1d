/** `runledger missing` and `runledger check`: what a person reads, what a program reads, and what a monitoring system exits with. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { ledgerOn, newFolder, run, sh } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'
import { awayFromTheHour, hour } from '../support/hour.ts'

eachDatabase('missing and check', (db) => {
  before(awayFromTheHour)

  const ledger = ledgerOn(db)
  const label = (back: number) => hour(back).toISOString().slice(0, 16).replace('T', '-')
  const set = (task: string, ...flags: string[]) => ledger.run(['tasks', 'set', '--task', task, '--every', '1h', '--since', hour(3).toISOString(), ...flags])
  const exec = (task: string, back: number, script: string) => ledger.run(['exec', '--task', task, '--every', '1h', '--at', hour(back).toISOString(), ...sh(script)])

  before(async () => {
    await set('news', '--grace', '0s')
    await exec('news', 3, 'exit 3')
    await exec('news', 2, 'true')
    await set('well', '--grace', '30d')
    await exec('well', 0, 'true')
  })

  it('missing is a table for people, with what one would ask next', async () => {
    const { code, stdout, stderr } = await ledger.run(['missing', '--task', 'news'])
    const [header = '', failed = '', late = '', one = '', ...rest] = stdout.split('\n')
    const shown = (back: number) => `${hour(back).toISOString().slice(0, 19).replace('T', ' ')}Z`

    assert.deepEqual([code, stderr, rest.at(-1)], [0, '', ''])
    assert.match(header, /^KEY +STATE +WINDOW +BEGAN +LATE +NOTE$/)
    assert.match(failed, new RegExp(`^news:${label(3)} +failed +${shown(3)} +\\S+ \\S+Z +\\S+ +exit, exit 3, \\S+ pid \\d+$`))
    assert.match(late, new RegExp(`^news:${label(2)} +late +${shown(2)} +\\S+ \\S+Z +2h\\d\\dm +\\S+ pid \\d+$`))
    assert.match(one, new RegExp(`^news:${label(1)} +missing +${shown(1)} +- +- +no launch$`))
  })

  it('missing --json is an object a window with the names of the columns', async () => {
    const lines = (await ledger.run(['missing', '--task', 'news', '--json'])).stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line) as Record<string, unknown>)

    assert.deepEqual(Object.keys(lines[0]!), ['task_name', 'task_key', 'window_start', 'window_end', 'window_zone', 'state', 'reason', 'late_seconds', 'attempt', 'host', 'pid', 'started_at', 'finished_at', 'exit_code'])
    assert.deepEqual(lines.map(({ state, reason, exit_code }) => [state, reason, exit_code]).slice(0, 3), [['failed', 'exit', 3], ['late', null, 0], ['missing', null, null]])
  })

  it('nothing missing is said so, and a limit that cuts is said too', async () => {
    assert.equal((await ledger.run(['missing', '--task', 'well'])).stdout, 'no window is missing\n')
    const cut = await ledger.run(['missing', '--task', 'news', '--limit', '1'])
    assert.deepEqual([cut.stdout.split('\n').length, cut.stderr], [3, 'runledger: there are more than 1; --task, --since or --limit show others\n'])
  })

  it('a task of which no schedule is known cannot be asked about', async () => {
    const { code, stderr } = await ledger.run(['missing', '--task', 'nobody'])
    assert.equal(code, 64)
    assert.match(stderr, /^runledger: INVALID_OPTION: task: no schedule of "nobody" is known; .*\n$/)
  })

  describe('check', () => {
    it('0 when all is well, in one line', async () => {
      assert.deepEqual(await ledger.run(['check', '--task', 'well']).then(({ code, stdout, stderr }) => [code, stdout, stderr]), [0, 'runledger OK: nothing is overdue, failed, stale or in doubt\n', ''])
    })

    it('2 when something is critical, with a line a problem', async () => {
      const { code, stdout } = await ledger.run(['check'])
      const [verdict, problem, end] = stdout.split('\n')
      assert.deepEqual([code, verdict, end], [2, 'runledger CRITICAL: 1 critical, 0 warnings', ''])
      assert.match(problem!, /^CRITICAL overdue news: the window of \S+Z did not run, and no launch is recorded \(grace 0ms\)$/)
    })

    it('1 for a warning, and a threshold makes it critical', async () => {
      await ledger.run(['exec', '--task', 'mail', ...sh('exit 4')])
      const warning = await ledger.run(['check', '--task', 'mail'])
      assert.equal(warning.code, 1)
      assert.match(warning.stdout, /^runledger WARNING: 0 critical, 1 warning\nWARNING failed mail: mail:manual-\S+ failed \(exit, exit 4\) at \S+Z\n$/)
      assert.equal((await ledger.run(['check', '--task', 'mail', '--failures', '1'])).code, 2)
    })

    it('--json is an object a problem', async () => {
      const lines = (await ledger.run(['check', '--task', 'news', '--json'])).stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line) as Record<string, unknown>)
      assert.deepEqual(lines.map(({ severity, kind, task_name }) => [severity, kind, task_name]), [['critical', 'overdue', 'news']])
    })

    it('3 when the database does not answer', async () => {
      const { code, stdout } = await run(['check', '--connect-timeout', '0s'], { env: { RUNLEDGER_DB: 'postgres://u:secret@127.0.0.1:1/x' } })
      assert.equal(code, 3)
      assert.match(stdout, /^runledger UNKNOWN: DATABASE_UNAVAILABLE: [^\n]+\n$/)
      assert.doesNotMatch(stdout, /secret/)
    })
  })
}, { atOnce: true })

eachDatabase('check of an old schema', (db) => {
  const ledger = ledgerOn(db)
  const folder = newFolder()

  it('is critical where the schema must be migrated by hand, and a file migrates itself', async () => {
    await ledger.sql(`delete from runledger_migrations where name = '0004-schedules'`)
    const { code, stdout } = await ledger.run(['check'], { cwd: folder })
    if (ledger.url.startsWith('sqlite:')) assert.equal(code, 0)
    else assert.deepEqual([code, stdout.split('\n').map((line) => line.replace(/:.*/, ''))], [2, ['runledger CRITICAL', 'CRITICAL schema', '']])
  })
}, { atOnce: true })

/** `runledger runs` and `runledger show`: the history as people read it, and as programs do. */
import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { before, it } from 'node:test'
import { ledgerOn, sh } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

type Json = Record<string, unknown>
const parsed = (stdout: string) => stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line) as Json)

eachDatabase('runs and show', (db) => {
  const ledger = ledgerOn(db)
  const news = ['exec', '--task', 'news', '--cron', '0 18 * * *', '--tz', 'Asia/Shanghai', '--at', '2026-09-20T10:00:00Z']

  before(async () => {
    await ledger.run([...news, '--max-attempts', '2', '--backoff', '0s', ...sh('echo try $RUNLEDGER_ATTEMPT; exit $((2 - RUNLEDGER_ATTEMPT))')], { env: { RUNLEDGER_LAUNCHER: 'cron' } })
    await ledger.run([...news, '--', 'true'], { env: { RUNLEDGER_LAUNCHER: 'tty' } })
    await ledger.run(['exec', '--task', 'mail', '--key', 'k', ...sh('echo oops >&2; exit 9')])
  })

  it('runs is a table for people, the newest first, with what one would ask next', async () => {
    const { code, stdout, stderr } = await ledger.run(['runs'])
    const [header = '', mail = '', row = '', ...rest] = stdout.split('\n')
    assert.deepEqual([code, stderr, rest], [0, '', ['']])
    assert.match(header, /^KEY +STATUS +ATTEMPT +STARTED +TOOK +HOST +PID +NOTE$/)
    assert.match(mail, /^mail:k +failed +1\/3 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ +\d+s +\S+ +\d+ +exit, exit 9, the job exited with 9$/)
    assert.match(row, /^news:2026-09-20-18:00 +completed +2\/2 .* cron$/)
  })

  it('runs --json is an object a run with the names of the columns', async () => {
    const [run = {}] = parsed((await ledger.run(['runs', '--task', 'news', '--json'])).stdout)
    assert.deepEqual(Object.keys(run), [
      'task_key', 'task_name', 'window_start', 'window_end', 'window_zone', 'status', 'attempt', 'max_attempts', 'fence', 'available_at', 'instance_id', 'host', 'pid', 'launcher', 'lease_seconds',
      'lease_over', 'started_at', 'heartbeat_at', 'finished_at', 'created_at', 'cancel_requested_at', 'failure_reason', 'exit_code', 'error', 'output_tail',
    ])
    assert.deepEqual(
      [run['task_key'], run['window_start'], run['window_end'], run['window_zone'], run['status'], run['attempt'], run['fence'], run['host'], run['launcher'], run['lease_over'], run['exit_code'], run['output_tail']],
      ['news:2026-09-20-18:00', '2026-09-20T10:00:00.000Z', '2026-09-21T10:00:00.000Z', 'Asia/Shanghai', 'completed', 2, 2, hostname(), 'cron', false, 0, 'try 2\n'],
    )
  })

  it('filters narrow it: task, status, since, limit', async () => {
    const keys = async (...flags: string[]) => parsed((await ledger.run(['runs', '--json', ...flags])).stdout).map(({ task_key }) => task_key)
    assert.deepEqual(await keys('--status', 'failed'), ['mail:k'])
    assert.deepEqual(await keys('--task', 'news', '--status', 'failed'), [])
    assert.deepEqual(await keys('--limit', '1'), ['mail:k'])
    assert.deepEqual((await keys('--since', '1h')).length, 2)
    await ledger.sql(`update task_runs set created_at = '2020-01-01 00:00:00' where task_name = 'mail'`)
    assert.deepEqual(await keys('--since', '1h'), ['news:2026-09-20-18:00'])
    assert.equal((await ledger.run(['runs', '--task', 'nobody'])).stdout, 'no runs\n')
  })

  it('show tells one run from its first attempt on: who, when, how it ended, who was refused', async () => {
    const { code, stdout } = await ledger.run(['show', 'news:2026-09-20-18:00'])
    const lines = stdout.split('\n')
    assert.equal(code, 0)
    assert.deepEqual(lines.slice(0, 3), ['news:2026-09-20-18:00  completed', 'window 2026-09-20 18:00:00+08:00 (10:00:00Z) to 2026-09-21 18:00:00+08:00 (10:00:00Z) (Asia/Shanghai); attempt 2 of at most 2; fence 2', ''])
    const at = '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\+08:00 \\((?:\\d{4}-\\d\\d-\\d\\d )?\\d\\d:\\d\\d:\\d\\dZ\\)'
    assert.match(lines[3]!, new RegExp(`^${at}  attempt 1   failed \\(exit, exit 1\\) after \\d+s, by ${hostname()} pid \\d+ \\(cron\\), fence 1$`))
    assert.match(lines[4]!, new RegExp(`^${at}  attempt 2   completed \\(exit 0\\) after \\d+s, by ${hostname()} pid \\d+ \\(cron\\), fence 2$`))
    assert.match(lines[5]!, new RegExp(`^${at}  conflict    done: ${hostname()} pid \\d+ \\(tty\\) was refused, held by attempt of ${hostname()} pid \\d+ since ${at}$`))
    assert.deepEqual(lines.slice(6), ['', 'the end of its output:', '  try 2', ''])
  })

  it('show --json gives the run first, then a line for each entry', async () => {
    const [run = {}, ...history] = parsed((await ledger.run(['show', 'news:2026-09-20-18:00', '--json'])).stdout)
    assert.deepEqual([run['kind'], run['status']], ['run', 'completed'])
    assert.deepEqual(history.map(({ kind, outcome, reason, attempt, exit_code, output_tail }) => [kind, outcome, reason, attempt, exit_code, output_tail]), [
      ['history', 'failed', 'exit', 1, 1, 'try 1\n'], ['history', 'completed', null, 2, 0, 'try 2\n'], ['history', 'conflict', 'done', null, null, null],
    ])
    assert.equal(history[2]!['held_by_instance'], run['instance_id'])
  })

  it('show of a failed run has its error and the end of its output', async () => {
    const { stdout } = await ledger.run(['show', 'mail:k'])
    assert.match(stdout, /\nerror: the job exited with 9\n\nthe end of its output:\n {2}oops\n$/)
  })

  it('case 69: a fence above 2^53 is exact, in the log, to the job, and as JSON', async () => {
    await ledger.sql(`insert into task_fences (scope, counter) values ('big', 9007199254740992)`)
    const ran = await ledger.run(['exec', '--task', 'big', '--key', 'k', ...sh('echo $RUNLEDGER_FENCE')])
    assert.equal(ran.stdout, '9007199254740993\n')
    assert.match(ran.stderr, / fence=9007199254740993 status=completed /)
    assert.match((await ledger.run(['runs', '--task', 'big', '--json'])).stdout, /"fence":9007199254740993,/)
    assert.match((await ledger.run(['show', 'big:k', '--json'])).stdout, /"fence":9007199254740993,[^]*"fence":9007199254740993,/)
  })

  it('a reader that goes away early is no error', async () => {
    const ran = await ledger.run(['runs'], { under: ['bash', '-c', '"$@" | true; exit "${PIPESTATUS[0]}"', 'bash'] })
    assert.deepEqual([ran.code, ran.stderr], [0, ''])
  })
}, { atOnce: true })

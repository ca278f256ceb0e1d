/** Operators' commands on real jobs: cancel, retry, release, pause, resume, and what `show` says of them afterwards. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { embeddedLedger, fieldsOf, gone, ledgerOn, newFolder, sh } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

const quick = ['--lease', '3s', '--heartbeat', '50ms']

eachDatabase('operate', (db) => {
  const ledger = ledgerOn(db)

  it('case 94: cancel stops an active job through its next heartbeat, children too, and no attempt follows', async (t) => {
    const job = ledger.start(t, ['exec', '--task', 'poison', '--key', 'k', ...quick, '--max-attempts', '5', '--backoff', '0s', ...sh('sleep 300 & echo going; wait')])
    const { instance } = fieldsOf(await job.line(/status=started/))

    const asked = await ledger.run(['cancel', 'poison:k', '--because', 'wrong file', '--by', 'ann', '--json'])

    assert.equal(asked.code, 0, asked.stderr)
    assert.deepEqual([JSON.parse(asked.stdout)['outcome'], JSON.parse(asked.stdout)['status']], ['requested', 'processing'])
    const { code, stderr } = await job.end
    assert.deepEqual([code, fieldsOf(stderr.trimEnd().split('\n').at(-1)!)['reason']], [143, 'cancelled'])
    await gone(instance!)
    assert.deepEqual(await ledger.sql(`select status, failure_reason, attempt, output_tail from task_runs where task_name = 'poison'`), [{ status: 'failed', failure_reason: 'cancelled', attempt: 1, output_tail: 'going\n' }])
    const next = await ledger.run(['exec', '--task', 'poison', '--key', 'k', '--', 'true'])
    assert.match(next.stderr, /status=conflict reason=failed/)
  })

  it('a failed run that is retried is run by the next launch of its task, and show tells the whole story in order', async () => {
    await ledger.run(['exec', '--task', 'report', '--key', 'monday', ...sh('exit 3')])
    assert.equal((await ledger.run(['retry', 'report:monday', '--because', 'the feed is back', '--by', 'ann'])).stdout, 'report:monday: pending again; the next launch of its task runs it\n')

    const next = await ledger.run(['exec', '--task', 'report', '--key', 'tuesday', ...sh('echo $RUNLEDGER_TASK_KEY $RUNLEDGER_ATTEMPT')])

    assert.equal(next.stdout, 'report:monday 2\nreport:tuesday 1\n')
    const { stdout } = await ledger.run(['show', 'report:monday'])
    assert.match(stdout, /attempt 1 {3}failed \(exit, exit 3\)[^\n]*\n[^\n]*retry {7}by ann from \S+ pid \d+ \(\S+\): the feed is back\n[^\n]*attempt 2 {3}completed/)
    const lines = (await ledger.run(['show', 'report:monday', '--json'])).stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
    const action = lines.find(({ kind }) => kind === 'action')!
    assert.deepEqual([action['action'], action['acted_by'], action['host'], action['because']], ['retry', 'ann', hostname(), 'the feed is back'])
  })

  it('a paused task runs nothing on any launch until it is resumed', async () => {
    assert.equal((await ledger.run(['pause', 'news', '--because', 'moving'])).stdout, 'news is paused\n')
    const refused = await ledger.run(['exec', '--task', 'news', '--key', 'a', '--conflict-exit-code', '9', ...sh('echo ran')])
    assert.deepEqual([refused.code, refused.stdout, fieldsOf(refused.stderr)['reason']], [9, '', 'paused'])
    assert.equal((await ledger.run(['resume', 'news'])).stdout, 'news is not paused\n')
    assert.equal((await ledger.run(['exec', '--task', 'news', '--key', 'a', ...sh('echo ran')])).stdout, 'ran\n')
    assert.equal((await ledger.run(['resume', 'news'])).stdout, 'news is not paused, as it was\n')
  })
})

describe('operate', () => {
  const ledger = embeddedLedger()

  it('a job that ends well although it was told to stop is cancelled all the same', async (t) => {
    const job = ledger.start(t, ['exec', '--task', 'tidy', '--key', 'k', ...quick, ...sh(`trap 'exit 0' TERM; echo going; while :; do sleep 0.05; done`)])
    await job.line(/status=started/)
    await ledger.run(['cancel', 'tidy:k'])
    assert.equal((await job.end).code, 0)
    assert.deepEqual(await ledger.sql(`select status, failure_reason from task_runs where task_name = 'tidy'`), [{ status: 'failed', failure_reason: 'cancelled' }])
  })

  it('a script that keeps its lease by hand is told by its heartbeat: 72, and its fail is the end', async () => {
    const claim = (await ledger.run(['claim', '--task', 'script', '--key', 'k', '--max-attempts', '5', '--backoff', '0s'])).stdout.trimEnd()
    const env = { RUNLEDGER_CLAIM: claim }
    await ledger.run(['cancel', 'script:k'])
    const beat = await ledger.run(['heartbeat'], { env })
    assert.deepEqual([beat.code, beat.stdout], [72, ''])
    assert.match(beat.stderr, /^runledger: RUN_CANCELLED: script:k attempt 1: [^\n]+\n$/)
    const failed = JSON.parse((await ledger.run(['fail'], { env })).stdout) as Record<string, unknown>
    assert.deepEqual([failed['status'], failed['retry_in_seconds']], ['cancelled', null])
  })

  it('claim --hold sends the script SIGTERM, and the run ends as cancelled when it is gone', async (t) => {
    const script = spawn('sleep', ['300'])
    const ended = once(script, 'exit')
    t.after(() => script.kill('SIGKILL'))
    assert.equal((await ledger.run(['claim', '--task', 'held', '--key', 'k', '--hold', String(script.pid), ...quick, '--max-attempts', '5'])).code, 0)
    await ledger.run(['cancel', 'held:k'])
    assert.deepEqual(await ended, [null, 'SIGTERM'])
    const next = await ledger.run(['claim', '--task', 'held', '--key', 'k'])
    assert.deepEqual([next.code, JSON.parse(next.stdout)['reason']], [73, 'failed'])
    assert.deepEqual(await ledger.sql(`select status, failure_reason, attempt from task_runs where task_name = 'held'`), [{ status: 'failed', failure_reason: 'cancelled', attempt: 1 }])
  })

  it('release KEY frees the run of a holder that may live only by force, and its job is ended', async (t) => {
    const marker = join(newFolder(t), 'ended')
    const job = ledger.start(t, ['exec', '--task', 'stuck', '--key', 'k', '--lease', '30s', '--heartbeat', '50ms', ...sh(`trap 'touch ${marker}; exit' TERM; while :; do sleep 0.05; done`)])
    const { pid } = fieldsOf(await job.line(/status=started/))
    const refused = await ledger.run(['release', 'stuck:k'])
    assert.deepEqual([refused.code, refused.stdout], [73, ''])
    assert.match(refused.stderr, new RegExp(`^runledger: release: stuck:k: \\S+ pid ${pid} renewed its lease at [^\\n]+force\\n$`))
    assert.equal((await ledger.run(['release', 'stuck:k', '--force', '--because', 'burned down'])).code, 0)
    assert.equal((await job.end).code, 75)
    assert.ok(existsSync(marker))
  })

  it('actions lists what was done, by whom and why, and nothing that was refused', async () => {
    await ledger.run(['exec', '--task', 'listed', '--key', 'a', '--', 'false'])
    await ledger.run(['release', 'listed:a'])
    await ledger.run(['retry', 'listed:a', '--by', 'ann', '--because', 'the feed is back'])
    await ledger.run(['pause', 'listed', '--by', 'bob'])
    const lines = (await ledger.run(['actions', '--task', 'listed', '--json'])).stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
    assert.deepEqual(lines.map((line) => [line['action'], line['task_key'], line['acted_by'], line['because']]), [['retry', 'listed:a', 'ann', 'the feed is back'], ['pause', null, 'bob', null]])
    const { stdout } = await ledger.run(['actions', '--key', 'listed:a'])
    assert.match(stdout, /^AT +ACTION +ON +BY +FROM +BECAUSE\n\S+ \S+Z +retry +listed:a +ann +\S+ \(\S+\) +the feed is back\n$/)
  })

  const wrong: [string[], number, RegExp][] = [
    [['cancel'], 64, /^runledger: INVALID_OPTION: cancel: takes one key/],
    [['cancel', 'a', 'b'], 64, /takes one key/],
    [['cancel', 'no:such'], 1, /^runledger: RUN_NOT_FOUND: /],
    [['retry', 'a:b', '--attempts', '0'], 64, /attempts/],
    [['pause'], 64, /takes one task/],
    [['pause', 'a b'], 64, /INVALID_OPTION: task/],
    [['pause', 'a', '--by', ''], 64, /INVALID_OPTION: by/],
    [['resume', ''], 64, /takes one task/],
  ]
  for (const [args, exit, line] of wrong) {
    it(`refuses ${JSON.stringify(args)} with one clear line`, async () => {
      const { code, stdout, stderr } = await ledger.run(args)
      assert.deepEqual([code, stdout, stderr.split('\n').length], [exit, '', 2])
      assert.match(stderr, line)
    })
  }
})

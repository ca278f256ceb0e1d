/** `runledger why`: what the person reads who was called at night, of a run in each state and of a whole task. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { embeddedLedger, fieldsOf, gone, ledgerOn, sh, type TestLedger } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

const why = async (ledger: TestLedger, subject: string) => {
  const { code, stdout, stderr } = await ledger.run(['why', subject])
  assert.deepEqual([code, stderr], [0, ''])
  return stdout
}

async function holder(ledger: TestLedger, t: TestContext, task: string, key: string, ...flags: string[]) {
  t.after(() => void job.process.kill('SIGTERM')) // Before start() looks whether anything is left.
  const job = ledger.start(t, ['exec', '--task', task, '--key', key, ...flags, '--', 'sleep', '300'])
  return { job, ...(fieldsOf(await job.line(/status=started/)) as { instance: string; pid: string; host: string }) }
}

eachDatabase('why', (db) => {
  const ledger = ledgerOn(db)

  it('names the holder of a run, since when and on what evidence it lives, and the launches it kept out', async (t) => {
    const { pid, host } = await holder(ledger, t, 'news', 'a')
    await ledger.run(['exec', '--task', 'news', '--key', 'a', '--', 'true'])
    const said = await why(ledger, 'news:a')
    assert.match(said, new RegExp(`^news:a is processing: attempt 1 of at most 3, since \\S+ \\S+Z \\(\\d+s\\), by ${host} pid ${pid} \\(\\S+\\)\\.$`, 'm'))
    assert.match(said, /^It counts as alive: its last heartbeat came \d+s ago, and its lease lasts until \S+ \S+Z, (\d+s|1m00s) from now, if it is not renewed; its process runs on this host\.$/m)
    assert.match(said, new RegExp(`^ {2}\\S+ \\S+Z {2}held: \\S+ pid \\d+ \\(\\S+\\) wanted news:a; news:a was held by \\S+ pid ${pid}$`, 'm'))
    assert.match(said, /^ {2}runledger cancel news:a +stop it for good$/m)
    assert.doesNotMatch(said, /release/, 'nobody has to believe what can be seen')
  })

  it('says of a pending run whose turn it is, and of a holder elsewhere that only its lease tells', async (t) => {
    const { pid } = await holder(ledger, t, 'busy', 'a')
    await ledger.sql(`update task_runs set host = 'server-02', process_identity = null where task_name = 'busy'`)
    await ledger.run(['exec', '--task', 'busy', '--key', 'b', '--overlap', 'queue', '--', 'true'])
    assert.match(await why(ledger, 'busy:b'), new RegExp(`^It is due, and waits for busy:a, which holds the concurrency key busy since [^\\n]+ \\(server-02 pid ${pid} [^\\n]+\\nIt counts as alive: [^\\n]+; whether its process lives can only be seen on server-02\\.$`, 'm'))
    assert.match(await why(ledger, 'busy:a'), /^ {2}runledger release busy:a --force +if you know that server-02 is dead$/m)
  })

  it('a task tells what holds it up, how it ended last, and what to do', async () => {
    await ledger.run(['exec', '--task', 'report', '--key', 'good', '--', 'true'])
    await ledger.run(['exec', '--task', 'report', '--key', 'bad', ...sh('exit 3')])
    await ledger.run(['pause', 'report', '--because', 'the disk is full', '--by', 'ann'])
    await ledger.run(['exec', '--task', 'report', '--key', 'next', '--', 'true'])
    const said = await why(ledger, 'report')
    assert.match(said, /^The task is paused since \S+ \S+Z by ann@\S+: the disk is full\. Until it is resumed nothing of it begins, on any host\.\nNothing of report is processing\.\n/)
    assert.match(said, /^The last that completed: report:good at [^\n]+\nThe last that failed: report:bad at [^\n]+ \(exit, exit 3\): the job exited with 3$/m)
    assert.match(said, /^ {2}\S+ \S+Z {2}paused: [^\n]+ wanted report:next$/m)
    assert.match(said, /^ {2}runledger resume report +let it run again$/m)
  })
}, { atOnce: true })

describe('why', () => {
  const ledger = embeddedLedger()

  it('a window that should have run and has no run is said to be so, with where its launch should have come from', async () => {
    await ledger.run(['tasks', 'set', '--task', 'feed', '--cron', '0 18 * * *', '--tz', 'Asia/Shanghai', '--since', '2026-01-01T00:00:00Z'])
    await ledger.sql(`insert into task_launchers (task_name, host, launcher, schedule, zone, first_seen_at, last_seen_at) values ('feed', 'server-02', 'cron', '0 18 * * *', 'Asia/Shanghai', '2026-01-01T10:00:00.000Z', '2026-02-01T10:00:00.000Z')`)
    const said = await why(ledger, 'feed:2026-02-02-18:00')
    assert.match(said, /^feed:2026-02-02-18:00 never ran: no run is recorded under this key\.\nBy 0 18 \* \* \* \(Asia\/Shanghai\) its window began at 2026-02-02 10:00:00Z, \d+h\d\dm ago: it was not launched, or its launch did not reach this ledger\.\nIt was launched by cron on server-02 \(last seen 2026-02-01 10:00:00Z, right to the hour\)\.$/m)
    assert.match(said, /^ {2}runledger exec --task feed --cron '0 18 \* \* \*' --tz Asia\/Shanghai --at 2026-02-02T10:00:00\.000Z -- CMD +run it now$/m)
    assert.match(await why(ledger, 'feed:2026-02-02-19:00'), /which has no such window: is the key right\?$/m)
    assert.match(await why(ledger, 'feed:2126-02-02-18:00'), /its window begins at 2126-02-02 10:00:00Z, \d+h\d\dm from now\.$/m)
    assert.match(await why(ledger, 'feed'), /^By 0 18 \* \* \* \(Asia\/Shanghai\) the window feed:\d{4}-\d\d-\d\d-18:00 began at \S+ 10:00:00Z, \S+ ago: nothing is recorded of it: [^\n]+ The next begins at \S+ 10:00:00Z, \S+ from now\.\nIt was launched by cron on server-02 /)
    assert.deepEqual((JSON.parse((await ledger.run(['why', 'feed:2026-02-02-18:00', '--json'])).stdout) as { window: unknown }).window, { window_start: '2026-02-02T10:00:00.000Z', window_end: '2026-02-03T10:00:00.000Z', window_zone: 'Asia/Shanghai', label: '2026-02-02-18:00' })
  })

  it('a holder whose process is gone from this host counts as dead before its lease ends', async (t) => {
    const { job, instance, pid } = await holder(ledger, t, 'crashed', 'a')
    job.process.kill('SIGKILL')
    await gone(instance)
    const said = await why(ledger, 'crashed:a')
    assert.match(said, new RegExp(`^It counts as dead: process ${pid} is gone from this host, whatever its lease says; its last heartbeat came \\d+s ago\\.\n2 more may be made: the next launch of crashed on any host takes it over, without anybody's help\\.$`, 'm'))
  })

  it('a holder whose lease ran out counts as dead wherever it is, and without attempts left that is the end', async (t) => {
    await holder(ledger, t, 'silent', 'a', '--max-attempts', '1')
    await ledger.sql(`update task_runs set host = 'server-02', process_identity = null, heartbeat_at = '2026-01-01T00:00:00.000Z' where task_name = 'silent'`)
    assert.match(await why(ledger, 'silent:a'), /^It counts as dead: its last heartbeat came \d+h\d\dm ago, and its lease ran out \d+h\d\dm ago, at 2026-01-01 00:01:00Z\.\nNo attempt is left: /m)
  })

  it('a run that waits for its backoff says until when, and how its last attempt ended', async () => {
    await ledger.sql(`insert into task_runs (task_key, task_name, status, available_at, created_at, attempt, max_attempts) values ('late:a', 'late', 'pending', '2099-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 1, 3)`)
    await ledger.sql(`insert into task_attempts (task_key, task_name, outcome, reason, ended_at, error, attempt) values ('late:a', 'late', 'failed', 'exit', '2026-01-01T00:00:09.000Z', 'the job exited with 3', 1)`)
    assert.match(await why(ledger, 'late:a'), /1 of at most 3 attempts was made, and the last ended as failed at 2026-01-01 00:00:09Z: the job exited with 3\.\nIt is not due: it may begin at 2099-01-01 00:00:00Z, /)
  })

  it('what is over says how it ended and how to have it done again', async () => {
    await ledger.run(['exec', '--task', 'over', '--key', 'good', '--', 'true'])
    await ledger.run(['exec', '--task', 'over', '--key', 'bad', '--', 'false'])
    assert.match(await why(ledger, 'over:good'), /^over:good is done: attempt 1 completed it at [^]+ {2}runledger retry over:good --force +have it done again$/m)
    assert.match(await why(ledger, 'over:bad'), /^over:bad failed \(exit, exit 1\) at [^]+It said: the job exited with 1\n[^]+ {2}runledger retry over:bad +one attempt more$/m)
  })

  it('--json is one object with the names of the columns', async () => {
    await ledger.run(['exec', '--task', 'json', '--key', 'a', '--', 'true'])
    const { stdout } = await ledger.run(['why', 'json:a', '--json'])
    const { about, task_name, run, evidence, paused, conflicts } = JSON.parse(stdout) as Record<string, unknown>
    assert.deepEqual([about, task_name, (run as Record<string, unknown>)['fence'], evidence, paused, conflicts, stdout.trimEnd().includes('\n')], ['run', 'json', 1, null, null, [], false])
    assert.deepEqual(Object.keys(JSON.parse((await ledger.run(['why', 'json', '--json'])).stdout) as object), ['about', 'task_name', 'now', 'paused', 'schedule', 'latest', 'processing', 'pending', 'last_completed', 'last_failed', 'conflicts'])
  })

  it('what nobody has heard of is told in one line, with exit code 1', async () => {
    const { code, stdout, stderr } = await ledger.run(['why', 'nobody'])
    assert.deepEqual([code, stdout, stderr], [1, '', 'runledger: RUN_NOT_FOUND: no run and no task "nobody" is recorded\n'])
    assert.equal((await ledger.run(['why'])).code, 64)
  })
})

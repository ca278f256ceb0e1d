/** `runledger reap`: closes what has no owner any more, says what it did, and touches nothing else. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { TestContext } from 'node:test'
import { fieldsOf, gone, ledgerOn, sh } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'
import { eachServer } from '../support/each-server.ts'
import { faultProxy } from '../support/fault-proxy.ts'

eachDatabase('reap', (db) => {
  const ledger = ledgerOn(db)
  const runs = (like: string) => ledger.sql(`select task_name, status, attempt, failure_reason from task_runs where task_name like '${like}' order by task_name`)

  /** A processing run whose owner was killed, which this host does not know and whose lease has run out. */
  async function orphan(t: TestContext, task: string, ...flags: string[]) {
    const holder = ledger.start(t, ['exec', '--task', task, '--key', 'k', ...flags, ...sh('sleep 300')])
    const started = fieldsOf(await holder.line(/status=started/))
    holder.process.kill('SIGKILL')
    await holder.end
    await gone(started['instance']!)
    await ledger.sql(`update task_runs set process_identity = null, lease_seconds = 0.001 where task_name = '${task}'`)
    return started
  }

  it('an expired attempt is lost: the run is pending again while attempts are left, else it has failed; both are told', async (t) => {
    const again = await orphan(t, 'expired-again')
    await orphan(t, 'expired-last', '--max-attempts', '1')
    const { code, stdout, stderr } = await ledger.run(['reap', '--json'])
    assert.equal(code, 0)
    const told = stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
    assert.deepEqual(told.map(({ task, key, attempt, max_attempts, now }) => [task, key, attempt, max_attempts, now]), [['expired-again', 'expired-again:k', 1, 3, 'pending'], ['expired-last', 'expired-last:k', 1, 1, 'failed']])
    assert.deepEqual([told[0]!['owner'], told[0]!['pid']], [again['instance'], Number(again['pid'])])
    const [first = '', second = '', pass = ''] = stderr.split('\n')
    assert.match(first, /^status=reaped task=expired-again key=expired-again:k attempt=1 max_attempts=3 now=pending host=\S+ pid=\d+ owner=\S+ started=\S+Z heartbeat=\S+Z time=\S+Z$/)
    assert.match(second, /^status=reaped task=expired-last .* now=failed /)
    assert.match(pass, /^status=reap_done instance=\S+ host=\S+ reaped=2 failed=1 time=\S+Z$/)
    assert.deepEqual(await runs('expired-%'), [
      { task_name: 'expired-again', status: 'pending', attempt: 1, failure_reason: null },
      { task_name: 'expired-last', status: 'failed', attempt: 1, failure_reason: 'lost' },
    ])
    assert.deepEqual((await ledger.sql(`select task_name, outcome from task_attempts where task_name like 'expired-%' order by task_name`)).map((row) => Object.values(row)), [['expired-again', 'lost'], ['expired-last', 'lost']])
  })

  it('case 92: a run in its lease, a pending one, a failed and a completed one are left as they are, however old', async (t) => {
    const holder = ledger.start(t, ['exec', '--task', 'kept-held', ...sh('sleep 300')])
    await holder.line(/status=started/)
    await ledger.run(['exec', '--task', 'kept-held', '--overlap', 'queue', '--key', 'q', '--', 'true'])
    await ledger.run(['exec', '--task', 'kept-failed', ...sh('exit 1')])
    await ledger.run(['exec', '--task', 'kept-done', '--', 'true'])
    await ledger.sql(`update task_runs set heartbeat_at = '2020-01-01 00:00:00', available_at = '2020-01-01 00:00:00' where task_name like 'kept-%' and status <> 'processing'`)
    const before = await ledger.sql(`select * from task_runs where task_name like 'kept-%' order by task_key`)
    const { code, stdout, stderr } = await ledger.run(['reap', '--json'])
    assert.deepEqual([code, stdout], [0, ''])
    assert.match(stderr, /^status=reap_done .* reaped=0 failed=0 time=\S+\n$/)
    assert.deepEqual(await ledger.sql(`select * from task_runs where task_name like 'kept-%' order by task_key`), before)
    holder.process.kill('SIGTERM')
    await holder.end
  })

  it('--every goes on pass after pass until it is told to stop, and ends with 0', async (t) => {
    const reaper = ledger.start(t, ['reap', '--every', '50ms', '--log-format', 'json'])
    await reaper.line(/"reap_done"/)
    await orphan(t, 'looped')
    const line = JSON.parse(await reaper.line(/"task":"looped"/)) as Record<string, unknown>
    assert.deepEqual([line['status'], line['key'], line['now']], ['reaped', 'looped:k', 'pending'])
    reaper.process.kill('SIGTERM')
    assert.equal((await reaper.end).code, 0)
  })
}, { atOnce: true })

eachServer('reap', (db) => {
  const ledger = ledgerOn(db)

  it('--every outlives the database: a line while it is away, and passes again when it is back', async (t) => {
    const proxy = await faultProxy(ledger.url)
    t.after(() => proxy.close())
    const reaper = ledger.start(t, ['reap', '--every', '50ms', '--connect-timeout', '0s'], { env: { RUNLEDGER_DB: proxy.url } })
    await reaper.line(/status=reap_done/)
    proxy.mode = 'refuse'
    proxy.reset()
    await reaper.line(/^runledger: DATABASE_UNAVAILABLE: /)
    proxy.mode = 'up'
    const complaint = (text: string) => text.lastIndexOf('DATABASE_UNAVAILABLE')
    await reaper.until((stderr) => stderr.indexOf('reap_done', complaint(stderr)) > 0, 'a pass after the outage')
    reaper.process.kill('SIGINT')
    assert.equal((await reaper.end).code, 0)
  })
}, { atOnce: true })

/** `runledger tasks` and `tasks set`: what is known of each task, and an operator's word, with who said it. */
import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { it } from 'node:test'
import { ledgerOn } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

eachDatabase('tasks', (db) => {
  const ledger = ledgerOn(db)
  const json = async (...args: string[]) => (await ledger.run(['tasks', ...args, '--json'])).stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line) as Record<string, unknown>)

  it('a launch by a schedule makes its task known, and who launches it; one by a key or by hand does not', async () => {
    await ledger.run(['exec', '--task', 'news', '--cron', '0 *  * * *', '--tz', 'Asia/Shanghai', '--overlap', 'queue', '--', 'true'], { env: { RUNLEDGER_LAUNCHER: 'cron' } })
    await ledger.run(['exec', '--task', 'mail', '--key', 'k', '--', 'true'])
    await ledger.run(['exec', '--task', 'old', '--every', '1h', '--at', '2026-09-20T10:00:00Z', '--', 'true'])

    const [task, ...others] = await json()

    assert.deepEqual([task?.['task_name'], task?.['schedule'], task?.['zone'], task?.['overlap'], task?.['catch_up'], task?.['grace_seconds'], others], ['news', '0 * * * *', 'Asia/Shanghai', 'queue', 'none', 300, []])
    assert.equal(Date.parse(String(task?.['expected_since'])) % 3_600_000, 0)
    const [launcher] = await json('--launchers')
    assert.deepEqual([launcher?.['task_name'], launcher?.['host'], launcher?.['launcher'], launcher?.['schedule'], launcher?.['zone']], ['news', hostname(), 'cron', '0 * * * *', 'Asia/Shanghai'])
  })

  it('set keeps what it is told, with who and why, and shows it', async () => {
    const ran = await ledger.run(
      ['tasks', 'set', '--task', 'report', '--cron', '30 2 * * *', '--tz', 'America/New_York', '--grace', '15m', '--catch-up', 'all', '--catch-up-max-age', '2d', '--catch-up-max-count', '5', '--since', '2026-09-20T00:00:00Z', '--because', 'OPS-12'],
      { env: { SUDO_USER: 'ann' } },
    )
    const [task] = await json('--task', 'report')
    const { stdout } = await ledger.run(['tasks', '--task', 'report'])

    assert.deepEqual([ran.code, ran.stdout], [0, 'report: 30 2 * * * in America/New_York, catch-up all\n'])
    assert.deepEqual(
      ['schedule', 'zone', 'grace_seconds', 'catch_up', 'catch_up_max_age_seconds', 'catch_up_max_count', 'expected_since', 'accounted_before'].map((name) => task?.[name]),
      ['30 2 * * *', 'America/New_York', 900, 'all', 172_800, 5, '2026-09-20T00:00:00.000Z', '2026-09-20T00:00:00.000Z'],
    )
    assert.match(stdout, /^TASK +SCHEDULE +ZONE +OVERLAP +GRACE +CATCH-UP +EXPECTED SINCE +NOTE\nreport +30 2 \* \* \* +America\/New_York +- +15m +all \(2d, 5\) +2026-09-20 00:00:00Z +schedule set by hand\n$/)
    assert.deepEqual(await ledger.sql(`select action, task_name, because, acted_by, host from task_actions`), [{ action: 'set', task_name: 'report', because: 'OPS-12', acted_by: 'ann', host: hostname() }])
    const [{ details } = {}] = await ledger.sql(`select details from task_actions`)
    assert.equal((JSON.parse(String(details)) as { catchUp: string }).catchUp, 'all')
  })

  it('a task that is not expected any more, and one that follows its launches again', async () => {
    const launch = ['exec', '--task', 'moved', '--every', '1h', '--', 'true']
    await ledger.run(['tasks', 'set', '--task', 'moved', '--no-schedule'])
    await ledger.run(launch)
    const [still] = await json('--task', 'moved')
    await ledger.run(['tasks', 'set', '--task', 'moved', '--as-launched'])
    await ledger.run(launch)
    const [follows] = await json('--task', 'moved')

    assert.deepEqual([still?.['schedule'], follows?.['schedule'], follows?.['schedule_set_at']], [null, '1h', null])
  })

  it('no task, no lines', async () => {
    assert.equal((await ledger.run(['tasks', '--task', 'nobody'])).stdout, 'no tasks\n')
    assert.deepEqual(await json('--task', 'nobody'), [])
  })
}, { atOnce: true })

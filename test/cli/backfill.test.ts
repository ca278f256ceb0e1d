/** `runledger backfill`: a span of windows is filled, each once, under its own key, however often it is interrupted. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fieldsOf, gone, kill, ledgerOn, newFolder, sh, until } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

eachDatabase('backfill', (db) => {
  const ledger = ledgerOn(db)
  const folder = newFolder()
  const path = (name: string) => join(folder, name)
  const lines = (name: string) => (existsSync(path(name)) ? readFileSync(path(name), 'utf8').split('\n').slice(0, -1) : [])
  const key = (task: string, hour: number) => `${task}:2026-09-20-0${hour}:00`
  const keys = (task: string, ...hours: number[]) => hours.map((hour) => key(task, hour))
  /** The first so many hours of the day, or from another hour on. */
  const span = (task: string, to: number, from = 0) => ['--task', task, '--every', '1h', '--from', `2026-09-20T0${from}:00:00Z`, '--to', `2026-09-20T0${to}:00:00Z`]
  const backfill = (task: string, to: number, ...flags: string[]) => ['backfill', ...span(task, to), ...flags]
  const noting = (task: string, then = 'true') => sh(`echo $RUNLEDGER_TASK_KEY >>${path(task)}; ${then}`)
  const exec = (task: string, hour: number, ...rest: string[]) => ['exec', '--task', task, '--every', '1h', '--at', `2026-09-20T0${hour}:00:00Z`, ...rest]
  const runs = (task: string) => ledger.sql(`select task_key, status, attempt from task_runs where task_name = '${task}' order by task_key`)
  const statuses = async (task: string) => (await runs(task)).map(({ status }) => status)
  const done = (stderr: string) => fieldsOf(stderr.split('\n').find((line) => / status=backfill_done /.test(line)) ?? '')

  describe('each with a task of its own', { concurrency: 3 }, () => {
    it('runs what nobody ran, the oldest window first, as exec would have, and leaves what is done or failed', async () => {
      await ledger.run(exec('plain', 1, '--', 'true'))
      await ledger.run(exec('plain', 2, '--', 'false'))
      const { code, stderr } = await ledger.run([...backfill('plain', 5), ...sh(`echo $RUNLEDGER_TASK_KEY $RUNLEDGER_WINDOW_START $RUNLEDGER_WINDOW_END $RUNLEDGER_IDEMPOTENCY_KEY >>${path('plain')}`)])

      assert.equal(code, 0)
      assert.deepEqual(lines('plain'), [0, 3, 4].map((hour) => `${key('plain', hour)} 2026-09-20T0${hour}:00:00.000Z 2026-09-20T0${hour + 1}:00:00.000Z ${key('plain', hour)}`))
      assert.deepEqual(await statuses('plain'), ['completed', 'completed', 'failed', 'completed', 'completed'])
      assert.deepEqual([done(stderr)['completed'], done(stderr)['left'], done(stderr)['failed']], ['3', '2', '0'])
    })

    it('--only failed runs failed ones again, with the next attempt; --only all those and what nobody ran; cancelled ones stay', async () => {
      for (const hour of [0, 1, 2]) await ledger.run(exec('choice', hour, '--', 'false'))
      await ledger.sql(`update task_runs set failure_reason = 'cancelled' where task_key = '${key('choice', 2)}'`)
      const only = (choice: string, to: number) => ledger.run([...backfill('choice', to, '--only', choice, '--because', 'OPS-9'), ...noting('choice')])

      await only('failed', 1)
      const failed = await runs('choice')
      await only('all', 5)

      assert.deepEqual(failed.map(({ status, attempt }) => [status, attempt]), [['completed', 2], ['failed', 1], ['failed', 1]])
      assert.deepEqual(lines('choice'), keys('choice', 0, 1, 3, 4))
      assert.deepEqual(await statuses('choice'), ['completed', 'completed', 'failed', 'completed', 'completed'])
      const actions = await ledger.sql(`select action, task_key, because from task_actions where task_name = 'choice' order by acted_at`)
      assert.deepEqual(actions.map(({ action, task_key, because }) => [action, task_key, because]), [
        ['backfill', null, 'OPS-9'], ['retry', key('choice', 0), 'OPS-9'], ['backfill', null, 'OPS-9'], ['retry', key('choice', 1), 'OPS-9'],
      ])
    })

    it('--dry-run says what would be done with each window, and writes nothing', async () => {
      await ledger.run(exec('dry', 0, '--', 'true'))
      await ledger.run(exec('dry', 1, '--', 'false'))
      const before = await runs('dry')
      const shown = async (...flags: string[]) => (await ledger.run(backfill('dry', 3, '--dry-run', ...flags))).stdout.split('\n').slice(1, -1).map((line) => line.split(/ {2,}/).toSpliced(1, 1))

      assert.deepEqual(await shown(), [[key('dry', 0), 'completed', 'leave'], [key('dry', 1), 'failed', 'leave'], [key('dry', 2), 'missing', 'run']])
      assert.deepEqual((await shown('--only', 'all', '--newest-first')).map(([, , would]) => would), ['run', 'run again', 'leave'])
      assert.deepEqual([await runs('dry'), await ledger.sql(`select * from task_actions where task_name = 'dry'`)], [before, []])
    })

    it('--newest-first begins with the latest window; the code is that of the first job that failed', async () => {
      const { code, stderr } = await ledger.run([...backfill('newest', 3, '--newest-first'), ...noting('newest', 'case $RUNLEDGER_TASK_KEY in *-01:00) exit 7;; *-00:00) exit 8;; esac')])

      assert.deepEqual([code, lines('newest')], [7, keys('newest', 2, 1, 0)])
      assert.deepEqual([done(stderr)['completed'], done(stderr)['failed']], ['1', '2'])
    })

    it("a job's own exit code 75 is a failure like any other", async () => {
      const { code, stderr } = await ledger.run([...backfill('seventyfive', 2), ...sh('exit 75')])

      assert.deepEqual([code, done(stderr)['failed'], done(stderr)['not_begun']], [75, '2', '0'])
    })

    it('attempts, timeouts and their codes are those of exec', async () => {
      const retried = await ledger.run([...backfill('retried', 1, '--max-attempts', '3', '--backoff', '10ms'), ...sh('exit $((2 - RUNLEDGER_ATTEMPT))')])
      const slow = await ledger.run([...backfill('slow', 1, '--timeout', '200ms'), ...sh('sleep 60')])

      assert.deepEqual([retried.code, slow.code], [0, 124])
      assert.deepEqual((await runs('retried')).map(({ status, attempt }) => [status, attempt]), [['completed', 2]])
    })

    it('waits while another run of the task is at work, whose window it leaves; an ordinary launch meets an overlap meanwhile', async (t) => {
      const other = ledger.start(t, [...exec('turns', 1), '--only-own', ...noting('turns', `while [ ! -e ${path('turns.go')} ]; do sleep 0.05; done`)])
      await other.line(/status=started/)
      const filling = ledger.start(t, [...backfill('turns', 3), ...noting('turns', `while [ ! -e ${path('turns.end')} ]; do sleep 0.05; done`)])
      await filling.line(/status=waiting reason=overlap held_by_key=turns:2026-09-20-01:00/)
      writeFileSync(path('turns.go'), '')
      await other.end
      await filling.line(/status=started/)
      const launch = await ledger.run([...exec('turns', 5), '--only-own', '--', 'true'])
      writeFileSync(path('turns.end'), '')
      const { code } = await filling.end

      assert.equal(code, 0)
      assert.match(launch.stderr, /reason=overlap held_by_key=turns:2026-09-20-00:00/)
      assert.deepEqual(lines('turns'), keys('turns', 1, 0, 2))
    })

    it('--parallel runs so many at once, beside ordinary runs of the task', async (t) => {
      const waits = (go: string) => `while [ ! -e ${path(go)} ]; do sleep 0.05; done`
      const other = ledger.start(t, [...exec('wide', 5), '--only-own', ...sh(waits('wide.go'))])
      await other.line(/status=started/)
      const filling = ledger.start(t, [...backfill('wide', 5, '--parallel', '3'), ...noting('wide', waits('wide.go'))])
      await until(() => lines('wide').length === 3, 'three jobs at once')
      const processing = await ledger.sql(`select count(*) as n from task_runs where task_name = 'wide' and status = 'processing'`)
      writeFileSync(path('wide.go'), '')
      await Promise.all([filling.end, other.end])

      assert.deepEqual(processing.map(({ n }) => Number(n)), [4])
      assert.deepEqual(lines('wide').toSorted(), keys('wide', 0, 1, 2, 3, 4))
    })

    it('of two backfills of one span each window is run by one', async () => {
      const fill = () => ledger.run([...backfill('twice', 6, '--parallel', '2'), ...noting('twice', 'sleep 0.1')])
      const [one, two] = await Promise.all([fill(), fill()])

      assert.deepEqual([one?.code, two?.code, lines('twice').toSorted()], [0, 0, keys('twice', 0, 1, 2, 3, 4, 5)])
    })

    for (const [signal, code, task] of [['SIGTERM', 143, 'term'], ['SIGINT', 130, 'int']] as const) {
      it(`${signal} ends its jobs and begins nothing more; started again it goes on, and nothing done is done again`, async (t) => {
        const job = noting(task, `case $RUNLEDGER_TASK_KEY in *-0[12]:00) [ -e ${path(`${task}.go`)} ] || sleep 300;; esac; echo $RUNLEDGER_TASK_KEY >>${path(`${task}.done`)}`)
        const first = ledger.start(t, [...backfill(task, 5, '--parallel', '2'), ...job])
        await until(() => lines(task).length === 3, 'two that do not end')
        kill(Number(fieldsOf(await first.line(/status=started/))['pid']), signal)
        const stopped = await first.end
        const left = await statuses(task)
        writeFileSync(path(`${task}.go`), '')
        const second = await ledger.run([...backfill(task, 5), ...job])

        assert.deepEqual([stopped.code, left, done(stopped.stderr)['interrupted'], done(stopped.stderr)['not_begun']], [code, ['completed', 'pending', 'pending'], '2', '2'])
        assert.equal(second.code, 0)
        assert.deepEqual(lines(`${task}.done`), keys(task, 0, 1, 2, 3, 4))
      })
    }

    it('killed outright it leaves no job behind, and started again it goes on at once', async (t) => {
      const job = noting('killed', `[ -e ${path('killed.go')} ] || sleep 300; echo $RUNLEDGER_TASK_KEY >>${path('killed.done')}`)
      const first = ledger.start(t, [...backfill('killed', 2), ...job])
      const { pid, instance } = fieldsOf(await first.line(/status=started/))
      kill(Number(pid), 'SIGKILL')
      await gone(instance!)
      writeFileSync(path('killed.go'), '')
      const second = await ledger.run([...backfill('killed', 2), ...job])

      assert.deepEqual([second.code, lines('killed.done')], [0, keys('killed', 0, 1)])
      assert.deepEqual((await runs('killed')).map(({ status, attempt }) => [status, attempt]), [['completed', 2], ['completed', 1]])
    })

    it('a paused task is not filled: 73', async () => {
      await ledger.sql(`insert into tasks (task_name, paused_at) values ('paused', '2026-09-20T10:00:00')`)
      const { code, stderr } = await ledger.run([...backfill('paused', 3), ...noting('paused')])

      assert.deepEqual([code, lines('paused'), await runs('paused')], [73, [], []])
      assert.match(stderr, /status=conflict reason=paused/)
    })

    it("the schedule is the task's own unless another is given, and the future is not filled", async () => {
      await ledger.run(['tasks', 'set', '--task', 'own', '--cron', '0 */2 * * *'])
      const { stdout } = await ledger.run(['backfill', '--task', 'own', '--from', '2026-09-20T00:00Z', '--to', '2026-09-20T06:00Z', '--dry-run', '--json'])
      const tomorrow = await ledger.run(['backfill', '--task', 'own', '--from', new Date(Date.now() + 1000).toISOString(), '--to', new Date(Date.now() + 86_400_000).toISOString(), '--dry-run'])
      const unknown = await ledger.run(['backfill', '--task', 'nobody', '--from', '2026-09-20T00:00Z', '--to', '2026-09-20T06:00Z', '--dry-run'])

      assert.deepEqual(stdout.split('\n').filter(Boolean).map((line) => (JSON.parse(line) as { task_key: string }).task_key), keys('own', 0, 2, 4))
      assert.deepEqual([tomorrow.stdout, unknown.code], ['no window begins in that span\n', 64])
    })
  })
})

/** What a launch takes up besides its own window: queued runs, retries that are due, and its own attempts again. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { TestContext } from 'node:test'
import { fieldsOf, ledgerOn, newFolder, sh } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

eachDatabase('take-up', (db) => {
  const ledger = ledgerOn(db)
  const folder = newFolder()
  const path = (name: string) => join(folder, name)
  const lines = (name: string) => readFileSync(path(name), 'utf8').split('\n').slice(0, -1)
  const hourly = (task: string, hour: number) => ['exec', '--task', task, '--cron', '0 * * * *', '--at', `2026-09-20T${hour}:00:00Z`]
  const runs = (task: string) => ledger.sql(`select task_key, status, attempt from task_runs where task_name = '${task}' order by task_key`)
  const attempts = (task: string) => ledger.sql(`select attempt, outcome, reason, exit_code from task_attempts where task_name = '${task}' order by id`)

  /** Leaves these hours pending, recorded in the order given. */
  async function queue(t: TestContext, task: string, hours: readonly number[]) {
    const holder = ledger.start(t, [...hourly(task, 10), '--only-own', ...sh(`while [ ! -e ${path(`${task}.go`)} ]; do sleep 0.05; done`)])
    await holder.line(/status=started/)
    for (const hour of hours) assert.equal((await ledger.run([...hourly(task, hour), '--overlap', 'queue', '--', 'true'])).code, 0)
    writeFileSync(path(`${task}.go`), '')
    await holder.end
  }

  describe('each with a task of its own', { concurrency: 3 }, () => {
    it('what is pending comes first, the oldest window first, each under its own key and window; then the own one', async (t) => {
      await queue(t, 'backlog', [13, 11, 12])
      const ran = await ledger.run([...hourly('backlog', 14), ...sh(`echo $RUNLEDGER_TASK_KEY $RUNLEDGER_WINDOW_START $RUNLEDGER_WINDOW_END $RUNLEDGER_IDEMPOTENCY_KEY >>${path('backlog')}`)])
      assert.equal(ran.code, 0)
      assert.deepEqual(lines('backlog'), [11, 12, 13, 14].map((hour) => `backlog:2026-09-20-${hour}:00 2026-09-20T${hour}:00:00.000Z 2026-09-20T${hour + 1}:00:00.000Z backlog:2026-09-20-${hour}:00`))
    })

    it('--only-own takes up nothing else', async (t) => {
      await queue(t, 'own', [11])
      assert.equal((await ledger.run([...hourly('own', 12), '--only-own', '--', 'true'])).code, 0)
      assert.deepEqual((await runs('own')).map(({ status }) => status), ['completed', 'pending', 'completed'])
    })

    it("the exit code is the own window's, or else that of the first that was taken up and failed", async (t) => {
      await queue(t, 'codes', [11, 12])
      const job = sh('case $RUNLEDGER_TASK_KEY in *-11:00) exit 0;; *-12:00) exit 4;; *-13:00) exit 0;; *) exit 6;; esac')
      assert.equal((await ledger.run([...hourly('codes', 13), ...job])).code, 4)
      await queue(t, 'codes2', [12])
      assert.equal((await ledger.run([...hourly('codes2', 14), ...job])).code, 6)
    })

    it('a failed attempt is tried again by the same process after the backoff, with the next number and a larger fence', async () => {
      const job = sh(`echo $RUNLEDGER_ATTEMPT $RUNLEDGER_FENCE $RUNLEDGER_IDEMPOTENCY_KEY >>${path('retry')}; exit $((3 - RUNLEDGER_ATTEMPT))`)
      const ran = await ledger.run([...hourly('retry', 10), '--max-attempts', '5', '--backoff', '50ms', ...job])
      assert.equal(ran.code, 0)
      assert.deepEqual(lines('retry'), [1, 2, 3].map((n) => `${n} ${n} retry:2026-09-20-10:00`))
      assert.deepEqual(await runs('retry'), [{ task_key: 'retry:2026-09-20-10:00', status: 'completed', attempt: 3 }])
      assert.deepEqual(await attempts('retry'), [{ attempt: 1, outcome: 'failed', reason: 'exit', exit_code: 2 }, { attempt: 2, outcome: 'failed', reason: 'exit', exit_code: 1 }])
      const pauses = ran.stderr.split('\n').map(fieldsOf).flatMap(({ retry_in }) => (retry_in === undefined ? [] : [Number(retry_in.slice(0, -1))]))
      assert.ok(pauses.length === 2 && pauses[0]! >= 0.05 && pauses[0]! < 0.06 && pauses[1]! >= 0.1 && pauses[1]! < 0.12, String(pauses))
    })

    it('--max-attempts is the end of it, and a later launch of the window is a conflict', async () => {
      const launch = [...hourly('poison', 10), '--max-attempts', '2', '--backoff', '0s', '--conflict-exit-code', '9', ...sh('exit 3')]
      assert.deepEqual([(await ledger.run(launch)).code, (await ledger.run(launch)).code], [3, 9])
      assert.deepEqual(await runs('poison'), [{ task_key: 'poison:2026-09-20-10:00', status: 'failed', attempt: 2 }])
      assert.deepEqual((await attempts('poison')).map(({ outcome, reason }) => [outcome, reason]), [['failed', 'exit'], ['failed', 'exit'], ['conflict', 'failed']])
    })

    it('without --max-attempts a failure is final, and it is the first', async () => {
      assert.equal((await ledger.run([...hourly('final', 10), ...sh('exit 3')])).code, 3)
      assert.deepEqual(await runs('final'), [{ task_key: 'final:2026-09-20-10:00', status: 'failed', attempt: 1 }])
    })

    it('told to stop in its backoff it leaves the run pending, and the launch after the backoff takes it up', async (t) => {
      const first = ledger.start(t, [...hourly('patient', 10), '--max-attempts', '2', '--backoff', '600s', ...sh('exit $((2 - RUNLEDGER_ATTEMPT))')])
      await first.line(/status=failed .*retry_in=6\d\d\.?\d*s/)
      first.process.kill('SIGTERM')
      assert.equal((await first.end).signal, null)
      assert.deepEqual(await runs('patient'), [{ task_key: 'patient:2026-09-20-10:00', status: 'pending', attempt: 1 }])
      const early = await ledger.run([...hourly('patient', 10), '--', 'true'])
      assert.match(early.stderr, /status=conflict reason=not_due due=\S+Z /)
      await ledger.sql(`update task_runs set available_at = created_at where task_name = 'patient'`)
      const later = await ledger.run([...hourly('patient', 11), ...sh('exit $((2 - RUNLEDGER_ATTEMPT))'), 'later'])
      assert.equal(later.code, 1, 'the own window, attempt 1')
      assert.deepEqual((await runs('patient')).map(({ status, attempt }) => [status, attempt]), [['completed', 2], ['failed', 1]])
    })

    it('case 68: a retry that falls due while the next window runs waits for it; both are done, one after the other', async (t) => {
      const job = sh(`echo start $RUNLEDGER_TASK_KEY >>${path('68')}; case $RUNLEDGER_TASK_KEY in *-12:00) [ $RUNLEDGER_ATTEMPT = 2 ];; *) while [ ! -e ${path('68.go')} ]; do sleep 0.05; done;; esac; code=$?; echo end >>${path('68')}; exit $code`)
      const noon = ledger.start(t, [...hourly('retrying', 12), '--max-attempts', '2', '--backoff', '4s', ...job])
      await noon.line(/status=failed .*retry_in=/)
      const one = ledger.start(t, [...hourly('retrying', 13), ...job])
      await one.line(/-13:00.*status=started/)
      await noon.line(/-12:00.*status=conflict reason=overlap held_by_key=retrying:2026-09-20-13:00/)
      assert.equal((await noon.end).code, 1)
      writeFileSync(path('68.go'), '')
      assert.equal((await one.end).code, 0)
      assert.deepEqual(lines('68'), ['12', '13', '12'].flatMap((hour) => [`start retrying:2026-09-20-${hour}:00`, 'end']))
      assert.deepEqual((await runs('retrying')).map(({ status, attempt }) => [status, attempt]), [['completed', 2], ['completed', 1]])
    })
  })
}, { atOnce: true })

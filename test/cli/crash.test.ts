/** A wrapper that is killed: its job ends with it, and the next launch takes the run up, at once on the same host. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import type { TestContext } from 'node:test'
import { fieldsOf, gone, isRunning, ledgerOn, newFolder, sh, until } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

eachDatabase('crash', (db) => {
  const ledger = ledgerOn(db)
  const folder = newFolder()
  const launch = (task: string, hour: number) => ['exec', '--task', task, '--cron', '0 * * * *', '--at', `2026-09-20T${hour}:00:00Z`]
  const runs = (task: string) => ledger.sql(`select task_key, status, attempt from task_runs where task_name = '${task}' order by task_key`)

  /** Starts a job that has a child of its own, and kills the wrapper. Resolves when nothing of it is left. */
  async function crash(t: TestContext, task: string, ...flags: string[]) {
    const pids = join(folder, `${task}.pids`)
    const holder = ledger.start(t, [...launch(task, 10), ...flags, ...sh(`sleep 300 & echo $$ $! >${pids}; wait`)])
    const started = fieldsOf(await holder.line(/status=started/))
    const [child, grandchild] = await until(() => /^(\d+) (\d+)\n$/.exec(readPids(pids))?.slice(1).map(Number), 'the job')
    holder.process.kill('SIGKILL')
    await holder.end
    await gone(started['instance']!)
    assert.ok(!isRunning(child!) && !isRunning(grandchild!))
    return started
  }

  it('cases 86 and 102: job and children of a killed wrapper are gone, and the next launch runs the lost window first, at once', async (t) => {
    const lost = await crash(t, 'killed')
    const next = await ledger.run([...launch('killed', 11), ...sh('echo $RUNLEDGER_TASK_KEY $RUNLEDGER_ATTEMPT')])
    assert.deepEqual([next.code, next.stdout], [0, 'killed:2026-09-20-10:00 2\nkilled:2026-09-20-11:00 1\n'])
    assert.deepEqual(await ledger.sql(`select task_key, attempt, outcome, reason, instance_id, pid from task_attempts where task_name = 'killed'`), [
      { task_key: 'killed:2026-09-20-10:00', attempt: 1, outcome: 'lost', reason: 'lost', instance_id: lost['instance'], pid: Number(lost['pid']) },
    ])
  })

  it('the same window, launched again, takes over itself', async (t) => {
    await crash(t, 'again')
    const next = await ledger.run([...launch('again', 10), '--conflict-exit-code', '9', ...sh('echo $RUNLEDGER_ATTEMPT')])
    assert.deepEqual([next.code, next.stdout, await runs('again')], [0, '2\n', [{ task_key: 'again:2026-09-20-10:00', status: 'completed', attempt: 2 }]])
    assert.deepEqual(await ledger.sql(`select outcome from task_attempts where task_name = 'again'`), [{ outcome: 'lost' }], 'it is no conflict with itself')
  })

  it('case 86: of another host only the lease tells; until then launches are conflicts with its name, then the run is taken over', async (t) => {
    const lost = await crash(t, 'elsewhere')
    await ledger.sql(`update task_runs set host = 'server-02', process_identity = 'another-boot/4026531836/${lost['pid']}:1' where task_name = 'elsewhere'`)
    const other = await ledger.run([...launch('elsewhere', 11), '--', 'true'])
    const same = await ledger.run([...launch('elsewhere', 10), '--', 'true'])
    assert.match(other.stderr, /reason=overlap .*held_by_host=server-02/)
    assert.match(same.stderr, /reason=held .*held_by_host=server-02/)
    await ledger.sql(`update task_runs set lease_seconds = 0.001 where task_name = 'elsewhere'`)
    const late = await ledger.run([...launch('elsewhere', 12), ...sh('echo $RUNLEDGER_TASK_KEY $RUNLEDGER_ATTEMPT')])
    assert.equal(late.stdout, 'elsewhere:2026-09-20-10:00 2\nelsewhere:2026-09-20-12:00 1\n')
    const history = await ledger.sql(`select task_key, outcome, reason, held_by_host from task_attempts where task_name = 'elsewhere' order by id`)
    assert.deepEqual(history.map((row) => Object.values(row)), [
      ['elsewhere:2026-09-20-11:00', 'conflict', 'overlap', 'server-02'],
      ['elsewhere:2026-09-20-10:00', 'conflict', 'held', 'server-02'],
      ['elsewhere:2026-09-20-10:00', 'lost', 'lost', null],
    ])
  })

  it('a run that killed its last wrapper is not taken up again: it has failed as lost', async (t) => {
    await crash(t, 'last', '--max-attempts', '1')
    const next = await ledger.run([...launch('last', 11), ...sh('echo $RUNLEDGER_TASK_KEY')])
    assert.deepEqual([next.code, next.stdout], [0, 'last:2026-09-20-11:00\n'])
    assert.deepEqual(await ledger.sql(`select status, failure_reason, attempt from task_runs where task_key = 'last:2026-09-20-10:00'`), [{ status: 'failed', failure_reason: 'lost', attempt: 1 }])
  })
})

function readPids(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

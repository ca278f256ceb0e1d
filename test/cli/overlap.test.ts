/** What a launch does that meets a run of its task: skip, wait, queue, allow. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fieldsOf, isRunning, ledgerOn, newFolder, sh } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'
import { eachServer } from '../support/each-server.ts'
import { faultProxy } from '../support/fault-proxy.ts'

eachDatabase('overlap', (db) => {
  const ledger = ledgerOn(db)
  const folder = newFolder()

  /** Windows of one minute each. */
  const launch = (task: string, minute: number) => ['exec', '--task', task, '--cron', '* * * * *', '--at', `2026-09-20T10:0${minute}:00Z`]
  /** A job that ends when it is let go, and then tells its key. */
  const held = (name: string) => sh(`while [ ! -e ${join(folder, name)}.go ]; do sleep 0.05; done; echo $RUNLEDGER_TASK_KEY >>${join(folder, name)}.log`)
  const letGo = (name: string) => writeFileSync(join(folder, `${name}.go`), '')
  const log = (name: string) => readFileSync(join(folder, `${name}.log`), 'utf8').split('\n').slice(0, -1)
  const statuses = async (task: string) => Object.fromEntries((await ledger.sql(`select task_key, status from task_runs where task_name = '${task}'`)).map(({ task_key, status }) => [String(task_key).split(':').at(-1), status]))

  async function holder(t: TestContext, task: string) {
    const running = ledger.start(t, [...launch(task, 0), ...held(task)])
    const started = fieldsOf(await running.line(/status=started/))
    return { running, started }
  }

  it('skip, the default: the launch is a conflict, recorded with who stands in the way', async (t) => {
    const { running, started } = await holder(t, 'skip')
    const other = await ledger.run([...launch('skip', 1), '--conflict-exit-code', '3', ...held('skip')])
    const same = await ledger.run([...launch('skip', 0), '--conflict-exit-code', '3', ...held('skip')])
    letGo('skip')
    assert.deepEqual([(await running.end).code, other.code, same.code], [0, 3, 3])
    assert.match(other.stderr, new RegExp(`key=skip:2026-09-20-10:01 .*status=conflict reason=overlap held_by_key=skip:2026-09-20-10:00 held_by_host=\\S+ held_by_pid=${started['pid']} `))
    assert.match(same.stderr, new RegExp(`key=skip:2026-09-20-10:00 .*status=conflict reason=held held_by_host=\\S+ held_by_pid=${started['pid']} `))
    assert.deepEqual(await ledger.sql(`select task_key, reason, held_by_key, held_by_pid, held_by_instance from task_conflicts where task_name = 'skip' order by at`), [
      { task_key: 'skip:2026-09-20-10:01', reason: 'overlap', held_by_key: 'skip:2026-09-20-10:00', held_by_pid: Number(started['pid']), held_by_instance: started['instance'] },
      { task_key: 'skip:2026-09-20-10:00', reason: 'held', held_by_key: 'skip:2026-09-20-10:00', held_by_pid: Number(started['pid']), held_by_instance: started['instance'] },
    ])
    assert.deepEqual([await statuses('skip'), log('skip')], [{ '00': 'completed' }, ['skip:2026-09-20-10:00']])
  })

  it('wait: the launch runs after the holder, or gives up at --wait-timeout and says so', async (t) => {
    const { running, started } = await holder(t, 'wait')
    const patient = ledger.start(t, [...launch('wait', 1), '--overlap', 'wait', '--wait-timeout', '60s', ...held('wait')])
    const hasty = await ledger.run([...launch('wait', 2), '--overlap', 'wait', '--wait-timeout', '600ms', '--conflict-exit-code', '5', ...held('wait')])
    letGo('wait')
    assert.deepEqual([(await running.end).code, (await patient.end).code, hasty.code], [0, 0, 5])
    assert.deepEqual([await statuses('wait'), log('wait')], [{ '00': 'completed', '01': 'completed' }, ['wait:2026-09-20-10:00', 'wait:2026-09-20-10:01']])
    assert.deepEqual(await ledger.sql(`select task_key, reason, held_by_instance from task_conflicts where task_name = 'wait'`), [{ task_key: 'wait:2026-09-20-10:02', reason: 'wait_timeout', held_by_instance: started['instance'] }])
  })

  it('allow: the launch runs beside the holder', async (t) => {
    const { running } = await holder(t, 'allow')
    const beside = await ledger.run([...launch('allow', 1), '--overlap', 'allow', '--', 'true'])
    assert.deepEqual([beside.code, await statuses('allow')], [0, { '00': 'processing', '01': 'completed' }])
    letGo('allow')
    assert.equal((await running.end).code, 0)
  })

  it('queue: the launch leaves its window and goes; the holder runs it before it ends', async (t) => {
    const { running, started } = await holder(t, 'queue')
    const queued = await ledger.run([...launch('queue', 1), '--overlap', 'queue', '--conflict-exit-code', '7', ...held('other')])
    assert.equal(queued.code, 0)
    assert.match(queued.stderr, /^task=queue key=queue:2026-09-20-10:01 .*status=queued time=\S+\n$/)
    assert.deepEqual(await ledger.sql(`select status, attempt, instance_id from task_runs where task_key = 'queue:2026-09-20-10:01'`), [{ status: 'pending', attempt: 0, instance_id: null }])
    letGo('queue')
    assert.equal((await running.end).code, 0)
    assert.deepEqual(log('queue'), ['queue:2026-09-20-10:00', 'queue:2026-09-20-10:01'])
    assert.deepEqual(await ledger.sql(`select status, attempt, instance_id from task_runs where task_key = 'queue:2026-09-20-10:01'`), [{ status: 'completed', attempt: 1, instance_id: started['instance'] }])
  })

  it('queue: a window that is queued while the holder ends runs, once, whichever of the two is quicker', async (t) => {
    const tries = Number(process.env['RUNLEDGER_HANDOVER_TRIES'] ?? 10)
    const ends: string[] = []
    const handOver = async (n: number) => {
      const task = `race-${n}`
      const { running } = await holder(t, task)
      const other = ledger.start(t, [...launch(task, 1), '--overlap', 'queue', ...held(task)])
      await sleep(60 + (n / tries) * 240) // a sweep over the moments between its start and its claim
      letGo(task)
      await Promise.all([running.end, other.end])
      ends.push(...log(task).toSorted())
    }
    const lane = async (first: number) => {
      for (let n = first; n < tries; n += 3) await handOver(n)
    }
    await Promise.all([lane(0), lane(1), lane(2)])
    assert.deepEqual(ends.toSorted(), Array.from({ length: tries }, (_, n) => [`race-${n}:2026-09-20-10:00`, `race-${n}:2026-09-20-10:01`]).flat().toSorted())
    assert.deepEqual(await ledger.sql(`select status, attempt, count(*) as runs from task_runs where task_name like 'race-%' group by status, attempt`), [{ status: 'completed', attempt: 1, runs: 2 * tries }])
  })
}, { atOnce: true })

eachServer('overlap', (db) => {
  const ledger = ledgerOn(db)

  it('queue: a holder that ends between the refusal and the record leaves the window to the launch itself', async (t) => {
    const go = join(newFolder(t), 'go')
    const proxy = await faultProxy(ledger.url)
    t.after(() => proxy.close())
    const holder = ledger.start(t, ['exec', '--task', 'late', '--key', 'first', ...sh(`while [ ! -e ${go} ]; do sleep 0.05; done`)])
    await holder.line(/status=started/)
    await ledger.sql('update task_runs set process_identity = null') // as of another host: that it is gone by then proves nothing
    proxy.onStatement = (text) => {
      if (/active_key["`] = /.test(text)) writeFileSync(go, '') // it is reading who refuses it
      else if (/insert into/.test(text) && existsSync(go)) standStillUntil(() => !isRunning(holder.pid)) // it is about to record its window
      return undefined
    }
    const late = ledger.start(t, ['exec', '--task', 'late', '--key', 'second', '--overlap', 'queue', '--', 'true'], { env: { RUNLEDGER_DB: proxy.url } })
    assert.deepEqual([(await holder.end).code, (await late.end).code], [0, 0])
    assert.deepEqual(await ledger.sql(`select task_key, status, pid from task_runs where task_name = 'late' order by task_key`), [
      { task_key: 'late:first', status: 'completed', pid: holder.pid },
      { task_key: 'late:second', status: 'completed', pid: late.pid },
    ])
  })
}, { atOnce: true })

/** Holds this process, and with it what passes through its proxy. */
function standStillUntil(probe: () => boolean): void {
  for (const deadline = Date.now() + 30_000; !probe() && Date.now() < deadline; ) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
}

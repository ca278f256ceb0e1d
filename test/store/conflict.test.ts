/** A launch that lost is recorded: what it wanted, why it could not, and who stood in the way; it counts as nothing else. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { CONFLICT_REASONS, type Conflict } from '../../src/model/outcome.ts'
import { claim } from '../../src/store/claim.ts'
import { complete } from '../../src/store/close.ts'
import { recordConflict } from '../../src/store/conflict.ts'
import { readHistory } from '../../src/store/list-runs.ts'
import { eachLedger, hourFrom, instance, nobodyDied, request } from '../support/ledgers.ts'

eachLedger('conflict', (bench) => {
  async function conflictOf(asked: Parameters<typeof claim>[1]): Promise<Conflict> {
    const outcome = await claim(bench.store, asked, nobodyDied)
    assert.equal(outcome.status, 'conflict')
    return outcome as Conflict
  }

  it('says who lost, why, and who held it since when', async () => {
    const task = bench.task()
    const window = hourFrom('2026-09-20T10:00:00.454Z', 'Asia/Shanghai')
    const holder = instance({ host: 'web-2', pid: 811, launcher: 'systemd' })
    const loser = request(task, 'one', { window, instance: instance({ host: 'web-1', pid: 4, launcher: 'cron' }) })
    await bench.claim(request(task, 'one', { window, instance: holder }))

    await recordConflict(bench.store, loser, await conflictOf(loser))

    const [line] = (await readHistory(bench.store, loser.taskKey)).filter(({ outcome }) => outcome === 'conflict')
    assert.deepEqual([line?.task, line?.windowStart, line?.reason, line?.attempt, line?.fence], [task, window.start, 'held', null, null])
    assert.deepEqual([line?.instanceId, line?.host, line?.pid, line?.launcher], [loser.instance.id, 'web-1', 4, 'cron'])
    assert.deepEqual([line?.heldByKey, line?.heldByInstance, line?.heldByHost, line?.heldByPid, line?.heldByLauncher], [loser.taskKey, holder.id, 'web-2', 811, 'systemd'])
    const since = bench.store.readInstant((await bench.row(loser.taskKey))['started_at'])
    assert.deepEqual(line?.heldSince, since)
    assert.ok(Math.abs(line!.endedAt!.getTime() - Date.now()) < 60_000)
  })

  it('case 86: an overlap names the run that blocks', async () => {
    const task = bench.task()
    const blocking = await bench.claim(request(task, 'monday'))
    const loser = request(task, 'tuesday')

    await recordConflict(bench.store, loser, await conflictOf(loser))

    const lines = await bench.store.db.selectFrom('task_run_history').selectAll().where('task_key', '=', loser.taskKey).execute()
    assert.deepEqual(lines.map(({ outcome, reason, held_by_key, held_by_instance }) => [outcome, reason, held_by_key, held_by_instance]), [['conflict', 'overlap', blocking.taskKey, blocking.instanceId]])
  })

  for (const reason of CONFLICT_REASONS) {
    it(`${reason} can be recorded, also when nobody is known to hold anything`, async () => {
      const asked = request(bench.task())

      await recordConflict(bench.store, asked, { status: 'conflict', reason, taskKey: asked.taskKey, holder: null, dueAt: null })

      assert.deepEqual(await bench.outcomes(asked.taskKey), [`conflict ${reason}`])
    })
  }

  it('is never counted as a failure or a success, and makes no run', async () => {
    const task = bench.task()
    await complete(bench.store, await bench.claim(request(task, 'monday')), {})
    const status = () => bench.db.admin(`select last_success_at, last_failure_at, running, pending, failures_in_a_row from task_status where task_name = '${task}'`)
    const before = await status()

    for (const label of ['monday', 'monday', 'tuesday']) {
      const asked = request(task, label)
      await recordConflict(bench.store, asked, { status: 'conflict', reason: 'overlap', taskKey: asked.taskKey, holder: null, dueAt: null })
    }

    assert.deepEqual(await status(), before)
    assert.deepEqual((await bench.recorded(task)).runs.map(({ task_key }) => task_key), [`${task}:monday`])
    assert.deepEqual(await bench.db.admin(`select task_key, reason from task_conflicts where task_name = '${task}' order by task_key`), [
      { task_key: `${task}:monday`, reason: 'overlap' }, { task_key: `${task}:monday`, reason: 'overlap' }, { task_key: `${task}:tuesday`, reason: 'overlap' },
    ])
  })
})

/** An operator's word on a task is kept, with the line that says whose it was; what is not said stays. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { v7 as uuidv7 } from 'uuid'
import { cron, every } from '../../src/model/window/schedule.ts'
import { readTask } from '../../src/store/read-task.ts'
import { setTask } from '../../src/store/set-task.ts'
import { eachLedger } from '../support/ledgers.ts'
import { cutConnection, duplicateKey, interrupted, once } from '../support/failing-store.ts'
import type { TaskTerms } from '../../src/model/task.ts'

const ann = { user: 'ann', host: 'host-a', pid: 7, launcher: 'tty' }
const SINCE = new Date('2026-09-01T00:00:00Z')

eachLedger('set', (bench) => {
  const set = (task: string, terms: TaskTerms) => setTask(bench.store, task, terms, { name: 'set', task, taskKey: null, because: 'OPS-12', details: '{}' }, ann)
  const actions = (task: string) => bench.store.db.selectFrom('task_actions').select(['action', 'because', 'acted_by', 'host', 'launcher']).where('task_name', '=', task).execute()

  it('makes a task known that nobody has launched; its windows count from now', async () => {
    const task = bench.task()
    const before = Date.now() - 60_000

    const known = await set(task, { schedule: cron('0  18 * * * ', 'Asia/Shanghai'), graceMs: 90_000, catchUp: 'latest', catchUpMaxAgeMs: 86_400_000, catchUpMaxCount: 7, overlap: 'wait' })

    assert.deepEqual(
      [known.schedule, known.zone, known.graceMs, known.catchUp, known.catchUpMaxAgeMs, known.catchUpMaxCount, known.overlap],
      ['0 18 * * *', 'Asia/Shanghai', 90_000, 'latest', 86_400_000, 7, 'wait'],
    )
    assert.ok(known.expectedSince!.getTime() > before && known.accountedBefore!.getTime() > before && known.scheduleSetAt !== null && known.overlapSetAt !== null)
    assert.deepEqual(await actions(task), [{ action: 'set', because: 'OPS-12', acted_by: 'ann', host: 'host-a', launcher: 'tty' }])
  })

  it('changes what is said and nothing else', async () => {
    const task = bench.task()
    await set(task, { schedule: every('1h'), since: SINCE, catchUp: 'all', graceMs: 1000 })
    const before = await readTask(bench.store, task)

    await set(task, { catchUpMaxCount: 3 })

    assert.deepEqual(await readTask(bench.store, task), { ...before, catchUpMaxCount: 3 })
  })

  it('the same schedule again keeps from when on its windows count; another one counts from now', async () => {
    const task = bench.task()
    await set(task, { schedule: every('1h'), since: SINCE })

    const same = await set(task, { schedule: every('1h') })
    const other = await set(task, { schedule: every('2h') })

    assert.deepEqual(same.expectedSince, SINCE)
    assert.ok(other.expectedSince! > SINCE)
  })

  it('turning catch-up on is about what is missed from now on, unless since says otherwise', async () => {
    const [plain, since] = [bench.task(), bench.task()]
    for (const task of [plain, since]) await set(task, { schedule: every('1h'), since: SINCE })

    const on = await set(plain, { catchUp: 'none' }).then(() => set(plain, { catchUp: 'all' }))
    const from = await set(since, { catchUp: 'all', since: SINCE })
    const again = await set(since, { catchUp: 'latest' })

    assert.ok(on.accountedBefore! > SINCE)
    assert.deepEqual([on.expectedSince, from.accountedBefore, again.accountedBefore], [SINCE, SINCE, SINCE])
  })

  it('a task without a schedule expects nothing', async () => {
    const task = bench.task()
    await set(task, { schedule: every('1h') })

    const known = await set(task, { schedule: null })

    assert.deepEqual([known.schedule, known.zone, known.expectedSince], [null, null, null])
  })

  it('a launch that makes the row at the same moment does not make it fail', async () => {
    const task = bench.task()
    const store = interrupted(bench.store, once('before transaction', duplicateKey))

    const known = await setTask(store, task, { catchUp: 'all' }, { name: 'set', task, taskKey: null, because: null }, ann)

    assert.deepEqual([known.catchUp, (await actions(task)).length], ['all', 1])
  })

  it('sent again after an answer that was lost it is done once', async () => {
    const task = bench.task()
    const action = { id: uuidv7(), name: 'set', task, taskKey: null, because: null } as const
    const cut = interrupted(bench.store, once('after transaction', cutConnection))
    await assert.rejects(setTask(cut, task, { catchUp: 'all', schedule: every('1h') }, action, ann), /injected/)
    const first = await readTask(bench.store, task)

    assert.deepEqual([await setTask(bench.store, task, { catchUp: 'all', schedule: every('1h') }, action, ann), (await actions(task)).length], [first, 1])
  })

  it('a failing line of the action takes the change back', async () => {
    const task = bench.task()
    await assert.rejects(setTask(bench.store, task, { catchUp: 'all' }, { name: 'nonsense' as 'set', task, taskKey: null, because: null }, ann))

    assert.equal(await readTask(bench.store, task), null)
  })
})

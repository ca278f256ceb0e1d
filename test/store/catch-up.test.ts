/** Windows that nobody ran are found by a stored cursor and recorded once, within the bounds of the task, the oldest first. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { cron, every, type Schedule } from '../../src/model/window/schedule.ts'
import { windowAt } from '../../src/model/window/window.ts'
import type { TaskTerms } from '../../src/model/task.ts'
import { catchUp } from '../../src/store/catch-up.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { dueRuns } from '../../src/store/recover.ts'
import { readTask } from '../../src/store/read-task.ts'
import { setTask } from '../../src/store/set-task.ts'
import type { Store } from '../../src/store/tables.ts'
import { eachLedger, nobodyDied, request } from '../support/ledgers.ts'
import { cutConnection, interrupted, once } from '../support/failing-store.ts'
import { pastConflict, pastRun } from '../support/windows.ts'

const hourly = every('1h')
const at = (hour: number) => new Date(Date.UTC(2026, 8, 20, hour))
const ann = { user: 'ann', host: 'host-a', pid: 1, launcher: 'tty' }

eachLedger('catch-up', (bench) => {
  async function taskWith(terms: TaskTerms, schedule: Schedule = hourly, since = at(0)): Promise<string> {
    const task = bench.task()
    await setTask(bench.store, task, { schedule, since, ...terms }, { name: 'set', task, taskKey: null, because: null }, ann)
    return task
  }

  /** A launch of the window that the instant belongs to. */
  function launch(task: string, now: Date, store: Store = bench.store, schedule: Schedule = hourly) {
    const window = windowAt(schedule, now)!
    return catchUp(store, { ...request(task, window.label), window })
  }

  const hours = (keys: readonly string[] | undefined) => keys?.map((key) => Number(/-(\d\d):00$/.exec(key)![1]))
  const pending = async (task: string) => hours((await dueRuns(bench.store, task, nobodyDied, 5000)).map(({ taskKey }) => taskKey))
  const cursor = async (task: string) => (await readTask(bench.store, task))?.accountedBefore

  it('none: the gap is told by the launch after it and nothing is recorded', async () => {
    const task = await taskWith({})
    await pastRun(bench.store, task, hourly, at(3))

    const gap = await launch(task, at(7))
    await pastRun(bench.store, task, hourly, at(7))
    const next = await launch(task, at(8))

    assert.deepEqual(gap, { missed: 3, since: at(4), queued: [] })
    assert.deepEqual([next, await pending(task)], [null, []], 'the launch after that has nothing to tell')
  })

  it('latest: the latest window is recorded under its own key and window, the others are told', async () => {
    const task = await taskWith({ catchUp: 'latest' })
    await pastRun(bench.store, task, hourly, at(1))

    const gap = await launch(task, at(5))

    assert.deepEqual(gap, { missed: 4, since: at(0), queued: [`${task}:2026-09-20-04:00`] })
    const [run] = await dueRuns(bench.store, task, nobodyDied, 10)
    assert.deepEqual([run?.windowStart, run?.windowEnd, run?.windowZone, run?.attempt, run?.concurrencyKey], [at(4), at(5), 'UTC', 0, task])
  })

  it('all: every window that has no run, in any state, the oldest first', async () => {
    const task = await taskWith({ catchUp: 'all' })
    for (const [hour, status] of [[0, 'completed'], [2, 'failed'], [4, 'processing'], [5, 'pending']] as const) await pastRun(bench.store, task, hourly, at(hour), { status })

    const gap = await launch(task, at(8))

    assert.deepEqual([hours(gap?.queued), await pending(task)], [[1, 3, 6, 7], [1, 3, 5, 6, 7]])
  })

  it('the largest count takes the latest windows, the largest age none that is older', async () => {
    const [count, age] = [await taskWith({ catchUp: 'all', catchUpMaxCount: 2 }), await taskWith({ catchUp: 'all', catchUpMaxAgeMs: 3 * 3_600_000 })]

    const [few, young] = [await launch(count, at(8)), await launch(age, at(8))]

    assert.deepEqual([few?.missed, hours(few?.queued), young?.missed, hours(young?.queued)], [8, [6, 7], 3, [5, 6, 7]])
  })

  it('the cursor moves past what was accounted for, so that what was passed over stays so', async () => {
    const task = await taskWith({ catchUp: 'latest' })
    await launch(task, at(5))
    await pastRun(bench.store, task, hourly, at(5))

    const next = await launch(task, at(6))

    assert.deepEqual([next, await cursor(task), await pending(task)], [null, at(5), [4]])
  })

  it('without a gap the cursor is written when looking back has become long, and only then', async () => {
    const task = await taskWith({ catchUp: 'all' })
    const seen = []
    for (let hour = 0; hour < 17; hour++) {
      await launch(task, at(hour))
      seen.push((await cursor(task))?.getTime())
      await pastRun(bench.store, task, hourly, at(hour))
    }

    assert.deepEqual(seen, [...Array<number>(16).fill(at(0).getTime()), at(16).getTime()])
  })

  it('a window whose launch was refused by the policy is not missed; one that a pause kept back is', async () => {
    const task = await taskWith({ catchUp: 'all' })
    for (const [hour, reason] of [[1, 'overlap'], [2, 'wait_timeout'], [3, 'paused']] as const) await pastConflict(bench.store, `${task}:2026-09-20-0${hour}:00`, reason)

    assert.deepEqual(hours((await launch(task, at(4)))?.queued), [0, 3])
  })

  it('a paused task catches nothing up until it goes on, and then what the pause kept back', async () => {
    const task = await taskWith({ catchUp: 'latest' })
    const pause = (on: boolean) => bench.store.db.updateTable('tasks').set({ paused_at: on ? bench.store.now() : null }).where('task_name', '=', task).execute()
    await pause(true)

    const meanwhile = [await launch(task, at(2)), await launch(task, at(3))]
    await pause(false)

    assert.deepEqual([meanwhile, hours((await launch(task, at(4)))?.queued)], [[null, null], [3]])
  })

  it('nothing from before the task was known, nor from before what was pruned', async () => {
    const task = await taskWith({ catchUp: 'all', since: at(2) })
    await bench.store.db.updateTable('tasks').set({ pruned_before: bench.store.instant(at(4)) }).where('task_name', '=', task).execute()
    const unknown = bench.task()

    assert.deepEqual([hours((await launch(task, at(6)))?.queued), await launch(unknown, at(6))], [[4, 5], null])
  })

  it('clock changes: a fixed time in a gap is caught up at the first instant after it, an interval is not', async () => {
    const since = new Date('2026-03-08T05:00:00Z')
    const now = new Date('2026-03-08T10:30:00Z')
    const [fixed, interval] = [cron('30 2 * * *', 'America/New_York'), cron('*/30 * * * *', 'America/New_York')]
    const [one, two] = [await taskWith({ catchUp: 'all' }, fixed, since), await taskWith({ catchUp: 'all' }, interval, since)]

    const later = await launch(one, new Date('2026-03-09T07:00:00Z'), bench.store, fixed)
    const gap = await launch(two, now, bench.store, interval)

    assert.deepEqual(later?.queued, [`${one}:2026-03-08-03:00`])
    assert.deepEqual(gap?.queued.map((key) => key.slice(-5)), ['00:00', '00:30', '01:00', '01:30', '03:00', '03:30', '04:00', '04:30', '05:00', '05:30', '06:00'])
  })

  it('whatever ran, and in whatever order launches come, in the end every window has one run', async () => {
    const windows = fc.uniqueArray(fc.integer({ min: 0, max: 11 }))
    await fc.assert(
      fc.asyncProperty(windows, windows, async (ran, launches) => {
        const task = await taskWith({ catchUp: 'all' })
        for (const hour of ran) await pastRun(bench.store, task, hourly, at(hour), { status: hour % 2 ? 'failed' : 'completed' })
        for (const hour of launches) {
          await launch(task, at(hour))
          await queueRun(bench.store, { ...request(task, windowAt(hourly, at(hour))!.label), window: windowAt(hourly, at(hour)) })
        }
        await launch(task, at(12))

        const { runs } = await bench.recorded(task)
        assert.deepEqual(hours(runs.map((run) => String(run['task_key']))), Array.from({ length: 12 }, (_, hour) => hour))
      }),
      { numRuns: 12 },
    )
  })

  it('case 18: of ten launches that find the gap at once one records it, each window once', async () => {
    for (const terms of [{ catchUp: 'latest' }, { catchUp: 'all' }] as const) {
      const task = await taskWith(terms)
      const stores = await Promise.all(Array.from({ length: 10 }, () => bench.openStore()))

      const gaps = await Promise.all(stores.map((store) => launch(task, at(5), store)))

      const expected = terms.catchUp === 'all' ? [0, 1, 2, 3, 4] : [4]
      assert.deepEqual([gaps.filter((gap) => gap !== null).map(({ queued }) => hours(queued)), await pending(task)], [[expected], expected])
    }
  })

  it('a launch of a later window that was quicker leaves nothing to do, and nothing is recorded twice', async () => {
    const task = await taskWith({ catchUp: 'latest' })
    let overtaken = false
    const slow = interrupted(bench.store, async (moment) => {
      if (moment !== 'before transaction' || overtaken) return
      overtaken = true
      await launch(task, at(6))
    })

    const late = await launch(task, at(5), slow)

    assert.deepEqual([late, await cursor(task), await pending(task)], [null, at(6), [5]])
  })

  it('a window that was begun between the look and the write is left to who began it', async () => {
    const task = await taskWith({ catchUp: 'all' })
    let begun = false
    const slow = interrupted(bench.store, async (moment) => {
      if (moment !== 'before transaction' || begun) return
      begun = true
      await pastRun(bench.store, task, hourly, at(1), { status: 'processing' })
    })

    assert.deepEqual([hours((await launch(task, at(3), slow))?.queued), await pending(task)], [[0, 2], [0, 2]])
  })

  it('cut off before the commit it has done nothing, and the next launch does all', async () => {
    const task = await taskWith({ catchUp: 'latest' })
    await assert.rejects(launch(task, at(5), interrupted(bench.store, once('before transaction', cutConnection))), /injected/)
    assert.deepEqual([await cursor(task), await pending(task)], [at(0), []])

    assert.deepEqual(hours((await launch(task, at(5)))?.queued), [4])
  })
})

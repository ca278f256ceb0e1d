/** A launch by a schedule tells the ledger what its task is: once, cheaply, and never against an operator's word. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import type { LogEvent } from 'kysely'
import { cron } from '../../src/model/window/schedule.ts'
import { learnTask, type Sighting } from '../../src/store/learn-task.ts'
import { listLaunchers, readTask } from '../../src/store/read-task.ts'
import { setTask } from '../../src/store/set-task.ts'
import { Bench, eachLedger, request } from '../support/ledgers.ts'
import { onlyOn } from '../support/only-on.ts'

const HOUR_MS = 3_600_000
const WINDOW = new Date('2026-09-20T10:00:00Z')
const action = { name: 'set', task: null, taskKey: null, because: null } as const
const ann = { user: 'ann', host: 'host-a', pid: 1, launcher: 'tty' }

function sighting(task: string, more: Partial<Sighting> = {}): Sighting {
  return { task, schedule: '0 * * * *', zone: 'UTC', overlap: 'skip', host: 'host-a', launcher: 'cron', windowStart: WINDOW, keyBefore: null, ...more }
}

eachLedger('learn', (bench) => {
  const schedule = async (task: string) => (await readTask(bench.store, task))?.schedule
  /** A store whose clock is that far ahead. */
  const later = (hours: number) => bench.openStore({ clock: { offsetMs: hours * HOUR_MS } })

  it('the first launch makes the task known: schedule, zone, policy, the first window that is expected, and who it was', async () => {
    const task = bench.task()

    assert.equal(await learnTask(bench.store, sighting(task, { zone: 'Asia/Shanghai', overlap: 'queue' })), null)

    const known = await readTask(bench.store, task)
    assert.deepEqual([known?.schedule, known?.zone, known?.overlap, known?.expectedSince, known?.catchUp, known?.scheduleSetAt], ['0 * * * *', 'Asia/Shanghai', 'queue', WINDOW, 'none', null])
    assert.deepEqual((await listLaunchers(bench.store, task)).map(({ host, launcher, schedule, zone }) => [host, launcher, schedule, zone]), [['host-a', 'cron', '0 * * * *', 'Asia/Shanghai']])
  })

  it('a launch that says nothing new is one read and no write', async () => {
    const task = bench.task()
    await learnTask(bench.store, sighting(task))
    const sent: string[] = []
    const store = await bench.openStore({ log: (event: LogEvent) => void sent.push(event.query.sql) })
    sent.length = 0

    const known = await learnTask(store, sighting(task))

    assert.equal(known?.task.schedule, '0 * * * *')
    assert.deepEqual([sent.length, sent.filter((text) => !text.startsWith('select'))], [1, []])
  })

  it('it says whether the window before has a run, in whatever state', async () => {
    const task = bench.task()
    await learnTask(bench.store, sighting(task))
    await bench.claim({ ...request(task), taskKey: `${task}:before` })

    const answers = []
    for (const keyBefore of [`${task}:before`, `${task}:never`, null]) answers.push((await learnTask(bench.store, sighting(task, { keyBefore })))?.ranBefore)

    assert.deepEqual(answers, [true, false, false])
  })

  it('an edited crontab counts at once, and its windows from that launch on', async () => {
    const task = bench.task()
    await learnTask(bench.store, sighting(task))
    const half = new Date('2026-09-20T11:30:00Z')

    await learnTask(bench.store, sighting(task, { schedule: '*/30 * * * *', zone: 'Europe/Berlin', windowStart: half }))

    const known = await readTask(bench.store, task)
    assert.deepEqual([known?.schedule, known?.zone, known?.expectedSince], ['*/30 * * * *', 'Europe/Berlin', half])
  })

  it('of two schedules that are both launched one stays, and both can be seen', async () => {
    const task = bench.task()
    const [one, two] = [sighting(task), sighting(task, { schedule: '30 * * * *', host: 'host-b' })]
    await learnTask(bench.store, one)
    await learnTask(bench.store, two)

    for (let round = 0; round < 3; round++) for (const seen of [two, one]) await learnTask(bench.store, seen)

    assert.equal(await schedule(task), '30 * * * *')
    assert.deepEqual((await listLaunchers(bench.store, task)).map(({ host, schedule }) => `${host} ${schedule}`).toSorted(), ['host-a 0 * * * *', 'host-b 30 * * * *'])
  })

  it('a known schedule comes back when the recorded one has opened two windows without a launch', async () => {
    const task = bench.task()
    await learnTask(bench.store, sighting(task))
    await learnTask(bench.store, sighting(task, { schedule: '30 * * * *' }))
    const at = (hours: number) => sighting(task, { windowStart: new Date(Date.now() + hours * HOUR_MS) })

    await learnTask(await later(1), at(1))
    const early = await schedule(task)
    await learnTask(await later(4), at(4))

    assert.deepEqual([early, await schedule(task)], ['30 * * * *', '0 * * * *'])
  })

  it('a person who tries a schedule at a terminal changes none that is recorded', async () => {
    const [known, unknown] = [bench.task(), bench.task()]
    await learnTask(bench.store, sighting(known))

    for (const task of [known, unknown]) await learnTask(bench.store, sighting(task, { schedule: '* * * * *', launcher: 'tty' }))

    assert.deepEqual([await schedule(known), await schedule(unknown)], ['0 * * * *', '* * * * *'])
  })

  it('what an operator set is not changed by launches, until the operator says so', async () => {
    const task = bench.task()
    await setTask(bench.store, task, { schedule: cron('0 18 * * *', 'Asia/Shanghai'), overlap: 'queue' }, action, ann)

    await learnTask(bench.store, sighting(task))
    const kept = await readTask(bench.store, task)
    await setTask(bench.store, task, { schedule: 'launched', overlap: 'launched' }, action, ann)
    await learnTask(bench.store, sighting(task, { schedule: '5 * * * *' }))
    const followed = await readTask(bench.store, task)

    assert.deepEqual([kept?.schedule, kept?.zone, kept?.overlap], ['0 18 * * *', 'Asia/Shanghai', 'queue'])
    assert.deepEqual([followed?.schedule, followed?.zone, followed?.overlap], ['5 * * * *', 'UTC', 'skip'])
  })

  it('a row that a pause made learns its schedule from the next launch', async () => {
    const task = bench.task()
    await bench.store.db.insertInto('tasks').values({ task_name: task, schedule: null, zone: null, overlap: null, grace_seconds: null, paused_at: bench.store.now() }).execute()

    await learnTask(bench.store, sighting(task, { launcher: 'tty' }))

    const known = await readTask(bench.store, task)
    assert.deepEqual([known?.schedule, known?.expectedSince, known?.pausedAt !== null], ['0 * * * *', WINDOW, true])
  })

  it('the record of a launcher is renewed after an hour, and not before', async () => {
    const task = bench.task()
    await learnTask(bench.store, sighting(task))
    const lastSeen = async () => (await listLaunchers(bench.store, task))[0]!.lastSeenAt.getTime()
    const first = await lastSeen()

    await learnTask(await later(0.9), sighting(task))
    const second = await lastSeen()
    await learnTask(await later(1.1), sighting(task, { overlap: 'wait' }))

    assert.equal(second, first)
    assert.ok((await lastSeen()) - first > HOUR_MS)
    assert.equal((await readTask(bench.store, task))?.overlap, 'wait', 'a policy that has changed comes along')
  })

  it('where every launch has a host of its own, the fifty that were seen latest are remembered', async () => {
    const task = bench.task()
    for (let host = 0; host < 53; host++) await learnTask(bench.store, sighting(task, { host: `pod-${host}` }))

    const hosts = (await listLaunchers(bench.store, task)).map(({ host }) => host)

    assert.deepEqual([hosts.length, hosts.includes('pod-52'), hosts.includes('pod-0')], [50, true, false])
  })

  it('ten launches that bring the same news at once leave one task and one launcher', async () => {
    const task = bench.task()
    const stores = await Promise.all(Array.from({ length: 10 }, () => bench.openStore()))

    await Promise.all(stores.map((store) => learnTask(store, sighting(task))))

    assert.deepEqual([await schedule(task), (await listLaunchers(bench.store, task)).length], ['0 * * * *', 1])
  })
})

for (const name of ['postgres', 'mariadb', 'mysql'] as const) {
  onlyOn(name, 'learn, beside a forgotten session', (db) => {
    const bench = new Bench(db)
    before(() => bench.prepare())
    after(() => bench.close())

    it("a launch does not wait for whoever holds the task's row", async () => {
      const task = bench.task()
      await learnTask(bench.store, sighting(task))
      const other = await bench.openStore()
      await other.transaction(async (tx) => {
        await tx.updateTable('tasks').set({ overlap: 'allow' }).where('task_name', '=', task).execute()
        await learnTask(bench.store, sighting(task, { schedule: '7 * * * *' }))
      })

      assert.deepEqual([(await readTask(bench.store, task))?.schedule, (await readTask(bench.store, task))?.overlap], ['0 * * * *', 'allow'])
    })
  })
}

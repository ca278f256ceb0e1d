/** The library's tasks: learned from claims without a claim ever depending on it, and set at the door. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { LogEvent } from 'kysely'
import { cron, every, openLedger } from '../../src/index.ts'
import { until } from '../support/cli.ts'
import { eachLedger } from '../support/ledgers.ts'

eachLedger('tasks', (bench) => {
  it('a claim by a schedule tells the ledger what the task is; one by a key, or of another time, does not', async () => {
    const ledger = await bench.open()
    const [scheduled, keyed, past] = [bench.task(), bench.task(), bench.task()]

    await ledger.claim({ task: scheduled, window: cron('*/5 * * * *', 'Europe/Berlin'), overlap: 'queue' })
    await ledger.claim({ task: keyed, key: 'a' })
    await ledger.claim({ task: past, window: every('1h'), at: new Date('2026-09-20T10:00:00Z') })

    const [known] = await until(async () => ((await ledger.tasks.list(scheduled)).length > 0 ? ledger.tasks.list(scheduled) : null), 'the task')
    assert.deepEqual([known?.schedule, known?.zone, known?.overlap], ['*/5 * * * *', 'Europe/Berlin', 'queue'])
    const [launcher] = await until(async () => ((await ledger.tasks.launchers(scheduled)).length > 0 ? ledger.tasks.launchers(scheduled) : null), 'the launcher')
    assert.deepEqual([launcher?.host, launcher?.launcher], [ledger.instance.host, ledger.instance.launcher])
    assert.deepEqual([await ledger.tasks.list(keyed), await ledger.tasks.list(past)], [[], []])
  })

  it('a process that closes its ledger right after the claim has told all the same', async () => {
    const task = bench.task()
    const ledger = await openLedger(bench.url, { heartbeats: 'loop' })
    await ledger.claim({ task, window: every('1h') })
    await ledger.close()

    const other = await bench.open()
    assert.deepEqual([(await other.tasks.list(task)).length, (await other.tasks.launchers(task)).length], [1, 1])
  })

  it('a long-lived process says the same thing once an hour', async () => {
    const sent: string[] = []
    const ledger = bench.ledgerOn(await bench.openStore({ log: (event: LogEvent) => void sent.push(event.query.sql) }))
    const task = bench.task()
    await ledger.tasks.learn({ task, window: every('1h') })
    sent.length = 0

    const again = await ledger.tasks.learn({ task, window: every('1h') })
    assert.deepEqual([again, sent], [null, []])

    const other = await ledger.tasks.learn({ task, window: every('2h') })
    assert.equal(other?.task.schedule, '1h')
  })

  it('a claim is made whatever becomes of what it says of its task', async () => {
    const broken = bench.ledgerOn({
      ...bench.store,
      secondsBetween: () => {
        throw new Error('injected')
      },
    })

    const outcome = await broken.claim({ task: bench.task(), window: every('1h') })

    assert.equal(outcome.status, 'claimed')
    await assert.rejects(broken.tasks.learn({ task: bench.task(), window: every('1h') }), /injected/, 'who asks for it hears of it')
  })

  it('a schedule that is longer than the column runs all the same and is not kept', async () => {
    const [ledger, task] = [await bench.open(), bench.task()]
    const long = cron(`${Array.from({ length: 60 }, (_, minute) => minute).join(',')} ${Array.from({ length: 24 }, (_, hour) => hour).join(',')} * * *`)

    const outcome = await ledger.claim({ task, window: long })

    assert.equal(outcome.status, 'claimed')
    assert.deepEqual([await ledger.tasks.learn({ task, window: long }), await ledger.tasks.list(task)], [null, []])
  })

  it('set refuses at the door what cannot be kept', async () => {
    const ledger = await bench.open()
    const refused = (terms: Parameters<typeof ledger.tasks.set>[1], option: RegExp, task = 't') => assert.rejects(ledger.tasks.set(task, terms), { code: 'INVALID_OPTION', message: option })

    await refused({}, /nothing to set/)
    await refused({ catchUp: 'some' as 'all' }, /catch-up: must be one of/)
    await refused({ catchUpMaxCount: 0 }, /catch-up-max-count: must be a whole number/)
    await refused({ schedule: cron(`${'0,'.repeat(100)}1 * * * *`) }, /cron: is longer than 200/)
    await refused({ graceMs: 1 }, /task: "a b"/, 'a b')
    for (const graceMs of [-1, NaN, Infinity, 1e15]) await refused({ graceMs }, /grace: /)
    for (const catchUpMaxAgeMs of [0, -1, NaN]) await refused({ catchUpMaxAgeMs }, /catch-up-max-age: /)
    await refused({ since: new Date(NaN) }, /since: /)
    await refused({ overlap: 'sometimes' as 'skip' }, /overlap: must be one of/)
    assert.deepEqual(await ledger.tasks.list('t'), [])
  })

  it('a failed run is opened again once, by who saw its last attempt', async () => {
    const [ledger, task] = [await bench.open(), bench.task()]
    await ledger.run({ task, key: 'a' }, () => Promise.reject(new Error('no'))).catch(() => {})
    const run = { taskKey: `${task}:a`, attempt: 1 }

    const answers = [await ledger.tasks.reopen(task, { ...run, attempt: 2 }, 3), ...(await Promise.all([1, 2, 3].map(() => ledger.tasks.reopen(task, run, 3, 'OPS-1'))))]

    assert.deepEqual(answers.toSorted(), [false, false, false, true])
    const row = await bench.row(run.taskKey)
    assert.deepEqual([row['status'], row['max_attempts']], ['pending', 4])
    const actions = await bench.store.db.selectFrom('task_actions').select(['action', 'task_key', 'because']).where('task_name', '=', task).execute()
    assert.deepEqual(actions, [{ action: 'retry', task_key: run.taskKey, because: 'OPS-1' }])
  })
})

/** doctor names what is wrong around a ledger, with what to do, and calls nothing wrong that is not. */
import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { it } from 'node:test'
import { sql } from 'kysely'
import { doctor, grants, type Checkup } from '../../src/index.ts'
import { isPooled, type DatabaseName } from '../support/databases.ts'
import { eachServerLedger, userUrl } from '../support/each-server.ts'
import { eachLedger, instance, request } from '../support/ledgers.ts'
import { oldWindows, windowOf } from '../support/old-runs.ts'
import { onlyOn } from '../support/only-on.ts'

async function look(url: string, clock?: { offsetMs: number }): Promise<Map<string, Checkup>> {
  const found = new Map<string, Checkup>()
  for await (const checkup of doctor(url, 2000, clock)) found.set(checkup.check, checkup)
  return found
}

const states = (found: Map<string, Checkup>) => Object.fromEntries([...found].filter(([, { state }]) => state !== 'ok').map(([check, { state }]) => [check, state]))

eachLedger('doctor', (bench) => {
  it('a ledger that is well is well in every respect, and launches are told by host and launcher', async () => {
    const task = bench.task()
    for (const [label, host] of [['a', 'web-1'], ['b', 'web-1'], ['c', 'web-2']] as const) await bench.claim(request(task, label, { concurrencyKey: null, instance: instance({ host, launcher: 'cron' }) }))

    const found = await look(bench.url)

    assert.deepEqual(states(found), {})
    for (const check of ['connection', 'version', 'schema', 'clock', 'rights', 'heartbeats', 'reaper']) assert.ok(found.has(check), check)
    assert.match(found.get('rights')!.said, /what an operator does/)
    assert.match(found.get(`launches of ${task}`)!.said, /^web-1 cron \(2\), web-2 cron \(1\) in the last 7 days$/)
    assert.ok([...found.values()].every(({ state, todo }) => (state === 'ok') === (todo === null)))
  })

  it('a clock that is more than 2 s away is a warning, in either direction; a little less is none', async () => {
    assert.deepEqual([(await look(bench.url, { offsetMs: 8000 })).get('clock')!.state, (await look(bench.url, { offsetMs: -8000 })).get('clock')!.state, (await look(bench.url, { offsetMs: 1000 })).get('clock')!.state], ['warning', 'warning', 'ok'])
    assert.match((await look(bench.url, { offsetMs: -60_000 })).get('clock')!.said, /60\.0s behind|59\.\ds behind/)
  })

  it('a lease that has been over for more than a minute means that no reaper was here', async () => {
    const task = bench.task()
    const { taskKey } = await bench.claim(request(task))
    await bench.age(taskKey, 100)
    assert.deepEqual(states(await look(bench.url)), {})
    await bench.age(taskKey, 130)
    const { state, said, todo } = (await look(bench.url)).get('reaper')!
    assert.deepEqual([state, /^1 lease has been over for up to 7\ds/.test(said), /runledger reap/.test(todo!)], ['warning', true, true])
    await (await bench.open()).reap()
  })

  it('a heartbeat that is a third of the lease late is a warning', async () => {
    const task = bench.task()
    const { taskKey } = await bench.claim(request(task, 'slow', { leaseSeconds: 300 }))
    await bench.age(taskKey, 90)
    assert.deepEqual(states(await look(bench.url)), {})
    await bench.age(taskKey, 130)
    const found = (await look(bench.url)).get('heartbeats')!
    assert.equal(found.state, 'warning')
    assert.match(found.said, new RegExp(`${taskKey} 13\\d\\.\\ds ago under a lease of 300s`))
    await bench.age(taskKey, 0)
  })

  it('two schedules for one task are told by their windows, or by their zones; one that follows another is none', async () => {
    const [one, inside, zones] = [bench.task(), bench.task(), bench.task()]
    const { store } = bench
    const now = { created_at: store.now() }
    for (const task of [one, inside, zones]) await oldWindows(store, task, 0, 5, now)
    await store.db.insertInto('task_runs').columns(['task_key', 'task_name', 'window_start', 'window_end', 'window_zone', 'status', 'available_at', 'created_at', 'finished_at', 'attempt', 'max_attempts', 'fence', 'instance_id'])
      .expression((eb) => eb.selectFrom('task_runs').select([sql<string>`'${sql.raw(inside)}:daily'`.as('k'), 'task_name', 'window_start', sql`${store.instant(windowOf(24).start)}`.as('e'), 'window_zone', 'status', 'available_at', 'created_at', 'finished_at', 'attempt', 'max_attempts', 'fence', 'instance_id']).where('task_key', '=', `${inside}:w000002`)).execute()
    await store.db.updateTable('task_runs').set({ window_zone: 'Asia/Shanghai' }).where('task_key', '=', `${zones}:w000003`).execute()

    const found = await look(bench.url)

    assert.deepEqual([found.has(`schedules of ${one}`), found.get(`schedules of ${inside}`)?.state, found.get(`schedules of ${zones}`)?.state], [false, 'warning', 'warning'])
    assert.match(found.get(`schedules of ${zones}`)!.said, /UTC and Asia\/Shanghai|Asia\/Shanghai and UTC/)
    await store.db.deleteFrom('task_runs').where('task_name', 'in', [inside, zones]).execute()
  })

  it('two schedules that are both launched are told with who launches them; the line before an edit, and a try at a prompt, are none', async () => {
    const { store } = bench
    const seen = async (task: string, rows: readonly (readonly [launcher: string, schedule: string, first: string, last: string])[]) => {
      await bench.claim(request(task, 'a', { concurrencyKey: null }))
      for (const [launcher, schedule, first, last] of rows) await store.db.insertInto('task_launchers').values({ task_name: task, host: 'web-1', launcher, schedule, zone: 'UTC', first_seen_at: store.instant(new Date(first)), last_seen_at: store.instant(new Date(last)) }).execute()
    }
    const [rivals, edited, tried] = [bench.task(), bench.task(), bench.task()]
    await seen(rivals, [['cron', '0 1 * * *', '2026-09-01T01:00:00Z', '2026-09-20T01:00:00Z'], ['systemd', '0 2 * * *', '2026-09-10T02:00:00Z', '2026-09-19T02:00:00Z']])
    await seen(edited, [['cron', '0 1 * * *', '2026-09-01T01:00:00Z', '2026-09-10T01:00:00Z'], ['cron', '0 2 * * *', '2026-09-11T02:00:00Z', '2026-09-19T02:00:00Z']])
    await seen(tried, [['cron', '0 1 * * *', '2026-09-01T01:00:00Z', '2026-09-20T01:00:00Z'], ['tty', '0 2 * * *', '2026-09-10T02:00:00Z', '2026-09-10T02:00:00Z']])

    const found = await look(bench.url)

    assert.match(found.get(`schedules of ${rivals}`)!.said, /^0 [12] \* \* \* \(UTC\) by \w+ on web-1 and 0 [12] \* \* \* \(UTC\) by \w+ on web-1$/)
    assert.deepEqual([found.has(`schedules of ${edited}`), found.has(`schedules of ${tried}`)], [false, false])
    await store.db.deleteFrom('task_launchers').execute()
  })

  it('a schema that is not there is a problem with what to do, and what needs it is left out', async () => {
    const found = await look(await bench.db.url())
    assert.deepEqual([states(found), found.get('schema')!.todo], [{ schema: 'problem' }, 'runledger migrate'])
    assert.deepEqual([found.has('rights'), found.has('reaper')], [false, false])
  })

  it('a URL that cannot be read is no finding but a mistake', async () => {
    await assert.rejects(look('oracle://db'), { code: 'INVALID_OPTION' })
  })
}, { atOnce: true })

const ODD: Partial<Record<DatabaseName, string>> = {
  postgres: 'alter table task_fences alter column scope type varchar(200) collate "en_US.utf8"',
  mariadb: 'alter table task_fences modify scope varchar(200) character set utf8mb4 collate utf8mb4_general_ci not null',
  mysql: 'alter table task_fences modify scope varchar(200) character set utf8mb4 collate utf8mb4_general_ci not null',
}

eachServerLedger('doctor', (bench, db) => {
  it('tells what a user may do, and what the next role needs', async () => {
    const theirs = new URL(await userUrl(db, bench.url, 'secret'))
    const name = new URL(bench.url).pathname.slice(1)
    await db.admin(db.name === 'postgres' ? `alter database ${name} owner to current_user; revoke all on schema public from ${theirs.username}` : `revoke all on ${name}.* from ${theirs.username}@'%'`, bench.url)
    const stranger = (await look(theirs.href)).get('schema') ?? (await look(theirs.href)).get('connection')
    assert.equal(stranger?.state, 'problem')
    await db.admin((await grants(bench.url, 'reader', theirs.username)).join('\n'), bench.url)
    const reader = await look(theirs.href)
    assert.deepEqual(states(reader), {})
    assert.match(reader.get('rights')!.said, /what a reader does; a runner also needs INSERT on task_runs, UPDATE on task_runs/)
    await db.admin((await grants(bench.url, 'runner', theirs.username)).join('\n'), bench.url)
    assert.match((await look(theirs.href)).get('rights')!.said, /what a runner does; an operator also needs DELETE on task_runs/)
  })

  it('an unreachable server is a problem like any other', async () => {
    const dead = new URL(bench.url)
    dead.port = '1'
    const found = await look(dead.href)
    assert.deepEqual([states(found), found.size], [{ connection: 'problem' }, 1])
    assert.match(found.get('connection')!.said, /nobody listens there/)
  })

  it('it says whether the connection goes to the server itself, and a key that is compared by a language is a problem', async () => {
    const url = await db.url()
    const { migrate } = await import('../../src/index.ts')
    await migrate(url)
    assert.match((await look(url)).get('pooler')!.said, !isPooled(db.name) ? /goes to the server itself/ : /a pooler \(such as PgBouncer\) stands in between/)
    const odd = ODD[db.name]!
    const made = await db.admin(odd, url).then(() => true, () => db.admin(odd.replace('en_US.utf8', 'C.utf8'), url).then(() => true, () => false))
    assert.ok(made)
    assert.match((await look(url)).get('collations')!.said, /task_fences\.scope not compared byte for byte/)
  })
}, { atOnce: true })

onlyOn('postgres', 'doctor', (db) => {
  it('a DateStyle in which instants cannot be read is a problem, and the rest is looked at all the same', async () => {
    const url = await db.url()
    await db.admin(`alter database ${new URL(url).pathname.slice(1)} set datestyle = 'SQL, DMY'`, url)
    const found = await look(url)
    assert.deepEqual([found.get('dates')!.state, found.get('dates')!.todo, found.has('pooler')], ['problem', 'alter role … set datestyle to iso', true])
  })
})

onlyOn('sqlite', 'doctor', (db) => {
  it('a file that everybody may write to is a problem, one that everybody may read a warning', async () => {
    const url = await db.url()
    await look(url)
    const path = url.slice('sqlite:'.length)
    const { dirname } = await import('node:path')
    chmodSync(dirname(path), 0o755)
    const found: string[] = []
    for (const mode of [0o640, 0o644, 0o666]) {
      chmodSync(path, mode)
      found.push((await look(url)).get('file modes')!.state)
    }
    assert.deepEqual(found, ['ok', 'warning', 'problem'])
  })
})

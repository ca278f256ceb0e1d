/** Keys are compared byte for byte and never shortened: two keys are one run only when they are the same text. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { checkKey, taskKey } from '../../src/model/names.ts'
import { claim } from '../../src/store/claim.ts'
import { readRun } from '../../src/store/read-run.ts'
import type { DatabaseName } from '../support/databases.ts'
import { eachLedger, nobodyDied, request } from '../support/ledgers.ts'

/** What makes a session as careless with values as the server lets it be. */
const careless: Record<DatabaseName, string> = { sqlite: 'select 1', postgres: 'select 1', mariadb: "set session sql_mode = ''", mysql: "set session sql_mode = ''" }

const pairs: [string, string][] = [
  ['Report:2026-01-01-00:00', 'report:2026-01-01-00:00'],
  ['cafe', 'café'],
  ['straße', 'strasse'],
  ['\u00e9', 'e\u0301'], // NFC and NFD
  ['İstanbul', 'istanbul'],
  ['a', 'a​'], // a space of no width
  ['ǆ', 'dž'],
  ['1', '１'], // full width
  ['💥', '💣'],
]

eachLedger('keys', (bench) => {
  for (const [one, other] of pairs) {
    it(`case 40: ${JSON.stringify(one)} and ${JSON.stringify(other)} are two runs`, async () => {
      const task = bench.task()

      const outcomes = [await claim(bench.store, request(task, one, { concurrencyKey: null }), nobodyDied), await claim(bench.store, request(task, other, { concurrencyKey: null }), nobodyDied)]

      assert.deepEqual(outcomes.map(({ status }) => status), ['claimed', 'claimed'])
      const stored = await bench.recorded(task)
      assert.deepEqual(stored.runs.map((run) => run['task_key']).toSorted(), [`${task}:${one}`, `${task}:${other}`].toSorted())
    })
  }

  it('case 40: task names, concurrency keys and fence scopes differ by case as well', async () => {
    const [upper, lower] = [`T/${bench.task()}`, `t/${bench.task()}`]
    const scopes = [upper, upper.toLowerCase(), lower, lower.toUpperCase()]

    const claims = []
    for (const scope of scopes) claims.push(await bench.claim(request(scope, 'one')))

    assert.deepEqual(claims.map(({ fence }) => fence), [1n, 1n, 1n, 1n])
  })

  for (const [what, character] of [['letters', 'x'], ['accents', 'é'], ['emoji', '💥']] as const) {
    it(`case 41: a key of 200 ${what} is stored whole, and one that differs in its last character is another run`, async () => {
      const task = bench.task()
      const room = 200 - task.length - 1
      const labels = [character.repeat(room), `${character.repeat(room - 1)}!`]

      for (const label of labels) await bench.claim(request(task, label, { taskKey: taskKey(task, label), concurrencyKey: null }))

      const { runs } = await bench.recorded(task)
      assert.deepEqual(runs.map((run) => run['task_key']).toSorted(), labels.map((label) => `${task}:${label}`).toSorted())
    })
  }

  for (const length of [201, 255, 256, 300]) {
    it(`case 41: a key of ${length} characters is refused before SQL, with the same words everywhere`, () => {
      for (const character of ['x', '💥']) assert.throws(() => checkKey('key', character.repeat(length)), { code: 'INVALID_OPTION', message: `INVALID_OPTION: key: is ${length} characters long; at most 200 are accepted` })
    })
  }

  it('case 41: nothing is cut short in a session that lets values be cut', async () => {
    const task = bench.task()
    const store = await bench.openStore({ poolMax: 1 })
    await sql.raw(careless[bench.db.name]).execute(store.db)
    const room = 200 - task.length - 1
    const labels = ['💥'.repeat(room), `${'💥'.repeat(room - 1)}!`]

    const outcomes = []
    for (const label of labels) outcomes.push(await claim(store, request(task, label, { concurrencyKey: null }), nobodyDied))
    const again = await claim(store, request(task, labels[0], { concurrencyKey: null }), nobodyDied)

    assert.deepEqual(outcomes.map(({ status }) => status), ['claimed', 'claimed'])
    assert.equal(again.status === 'conflict' && again.reason, 'held')
    for (const label of labels) assert.equal((await readRun(bench.store, `${task}:${label}`))?.taskKey, `${task}:${label}`)
  })

  it('case 107: quotes, backslashes and SQL in a key are text like any other', async () => {
    const task = bench.task()
    const labels = [`'; delete from task_runs;--`, `x"; drop table task_runs;--`, '`x``y`', '\\', "\\'", '%_', '$1 ? :a @b']

    for (const label of labels) await bench.claim(request(task, label, { taskKey: taskKey(task, label), concurrencyKey: null }))

    const { runs } = await bench.recorded(task)
    assert.deepEqual(runs.map((run) => run['task_key']).toSorted(), labels.map((label) => `${task}:${label}`).toSorted())
  })
})

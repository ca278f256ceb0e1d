/** Fences grow strictly within their scope, whatever happens to runs, rows and processes, and are numbers to the last digit. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { claim } from '../../src/store/claim.ts'
import { complete, fail, release } from '../../src/store/close.ts'
import { readHistory } from '../../src/store/list-runs.ts'
import { readRun } from '../../src/store/read-run.ts'
import type { DatabaseName } from '../support/databases.ts'
import { eachLedger, everybodyDied, nobodyDied, request } from '../support/ledgers.ts'

const LARGE = 9_007_199_254_740_993n // 2^53 + 1, which no double holds
const textType: Record<DatabaseName, string> = { sqlite: 'text', postgres: 'text', mariadb: 'char', mysql: 'char' }

eachLedger('fence', (bench) => {
  const setCounter = (scope: string, counter: bigint) => bench.store.db.insertInto('task_fences').values({ scope, counter }).execute()

  it('grows with every claim: windows, retries, releases and takeovers', async () => {
    const task = bench.task()
    const fences: bigint[] = []
    const next = async (label: string) => {
      const held = await bench.claim(request(task, label), everybodyDied)
      fences.push(held.fence)
      return held
    }
    await complete(bench.store, await next('monday'), {})
    await fail(bench.store, await next('tuesday'), 'error', {}, 0)
    await release(bench.store, await next('tuesday'), {})
    await next('tuesday')
    await next('tuesday')

    assert.deepEqual(fences, [1n, 2n, 3n, 4n, 5n])
  })

  it('goes on growing after the runs are gone', async () => {
    const task = bench.task()
    const first = await bench.claim(request(task))
    await bench.store.db.deleteFrom('task_runs').where('task_name', '=', task).execute()

    const second = await bench.claim(request(task))

    assert.ok(second.fence > first.fence)
  })

  it('counts by concurrency key, and by task for runs without one', async () => {
    const [one, other] = [bench.task(), bench.task()]
    const fences = [
      await bench.claim(request(one, 'a', { concurrencyKey: null })),
      await bench.claim(request(one, 'b', { concurrencyKey: null })),
      await bench.claim(request(other, 'a', { concurrencyKey: null })),
      await bench.claim(request(one, 'c', { concurrencyKey: `${one}/shared` })),
    ].map(({ fence }) => fence)
    await complete(bench.store, { ...(await readRun(bench.store, `${one}:c`))!, instanceId: (await readRun(bench.store, `${one}:c`))!.instanceId! }, {})
    fences.push((await bench.claim(request(other, 'b', { concurrencyKey: `${one}/shared` }))).fence)

    assert.deepEqual(fences, [1n, 2n, 1n, 1n, 2n])
  })

  it('of many claims at once each gets another one', async () => {
    const task = bench.task()

    const claims = await Promise.all(Array.from({ length: 20 }, (_, label) => bench.claim(request(task, String(label), { concurrencyKey: null }))))

    assert.deepEqual(claims.map(({ fence }) => fence).toSorted((a, b) => Number(a - b)), Array.from({ length: 20 }, (_, index) => BigInt(index + 1)))
  })

  it('a pending run that is taken counts in the same scope as a new one', async () => {
    const task = bench.task()
    const both = await Promise.all(['a', 'b'].map((label) => bench.claim(request(task, label, { concurrencyKey: null }))))
    for (const held of both) await fail(bench.store, held, 'error', {}, 0)

    const taken = await Promise.all(['a', 'b', 'c'].map((label) => bench.claim(request(task, label, { concurrencyKey: null }))))

    assert.deepEqual(taken.map(({ fence }) => fence).toSorted(), [3n, 4n, 5n])
  })

  it('case 69: 2^53 + 1 is kept to the last digit in the claim, in the row, in the history and by the guard', async () => {
    const task = bench.task()
    await setCounter(task, LARGE - 1n)

    const held = await bench.claim(request(task))
    const refused = await complete(bench.store, { ...held, fence: LARGE - 1n }, {})
    await release(bench.store, held, {})
    await release(bench.store, await bench.claim(request(task)), {})
    const taken = await bench.claim(request(task)) // The next that no double holds.

    assert.deepEqual([held.fence, refused, taken.fence], [LARGE, false, LARGE + 2n])
    assert.equal((await readRun(bench.store, held.taskKey))?.fence, LARGE + 2n)
    assert.deepEqual((await readHistory(bench.store, held.taskKey)).map(({ fence }) => fence), [LARGE, LARGE + 1n, LARGE + 2n])
    assert.equal(await complete(bench.store, taken, {}), true)
    assert.deepEqual(await bench.db.admin(`select cast(fence as ${textType[bench.db.name]}) as fence from task_runs where task_name = '${task}'`), [{ fence: String(LARGE + 2n) }])
  })

  it('case 69: 10 is more than 9', async () => {
    const task = bench.task()
    await setCounter(task, 8n)
    for (const label of ['nine', 'ten']) await bench.claim(request(task, label, { concurrencyKey: null }))

    const sorted = await bench.store.db.selectFrom('task_runs').select('task_key').where('task_name', '=', task).orderBy('fence').execute()

    assert.deepEqual(sorted.map(({ task_key }) => task_key), [`${task}:nine`, `${task}:ten`])
  })

  it('case 62: after a restore to a snapshot from before the claim, the next fence is not smaller than the one that was lost', async () => {
    const task = bench.task()
    await complete(bench.store, await bench.claim(request(task, 'monday')), {})
    const snapshot = await bench.store.db.selectFrom('task_fences').selectAll().where('scope', '=', task).executeTakeFirstOrThrow()
    const lost = await bench.claim(request(task, 'tuesday'))
    await bench.store.db.deleteFrom('task_runs').where('task_key', '=', lost.taskKey).execute()
    await bench.store.db.updateTable('task_fences').set({ counter: BigInt(snapshot.counter) }).where('scope', '=', task).execute()

    const again = await bench.claim(request(task, 'tuesday'))

    assert.ok(again.fence >= lost.fence)
    assert.equal(await complete(bench.store, lost, {}), false, 'the holder from before the restore is no holder any more')
  })

  it('a refused claim uses up no attempt, and hands out no fence twice', async () => {
    const task = bench.task()
    const first = await bench.claim(request(task, 'a'))
    for (const label of ['a', 'b']) await claim(bench.store, request(task, label), nobodyDied)
    await complete(bench.store, first, {})

    const next = await bench.claim(request(task, 'b'))

    assert.deepEqual([next.attempt, next.fence > first.fence], [1, true])
  })
})

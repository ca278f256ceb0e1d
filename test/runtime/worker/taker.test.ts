/** How a worker goes through a line: on behind its last place, and from the front again when that is not dear. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../../src/store/tables.ts'
import { Health } from '../../../src/runtime/worker/health.ts'
import { Taker } from '../../../src/runtime/worker/taker.ts'
import { interrupted } from '../../support/failing-store.ts'
import { eachLedger, instance } from '../../support/ledgers.ts'
import { enqueue, labels } from '../../support/queue.ts'

eachLedger('takers', (bench) => {
  const takerOn = (store: Store, task: string) => {
    const taker = new Taker({ store, health: new Health(() => {}), instance: instance(), tasks: [task], leaseSeconds: 60, holds: () => true })
    return async (limit: number) => {
      const { runs, more } = await taker.take(task, limit)
      return [labels(runs).join(''), more]
    }
  }

  it('at the end of a line it looks at the front once more, for what has come up there meanwhile', async () => {
    const task = bench.task()
    const take = takerOn(bench.store, task)
    await enqueue(bench.store, task, [{ label: 'a' }, { label: 'b' }, { label: 'c' }])
    const begun = performance.now()
    const first = await take(2)
    await sleep(11 * (performance.now() - begun)) // It gives a tenth of its time to the front.
    await enqueue(bench.store, task, [{ label: 'better', priority: -1 }])

    assert.deepEqual([first, await take(2), await take(2)], [['ab', true], ['c', true], ['better', bench.store.updatesInOne]])
  })

  it('where it is dear to look at the front, it stays behind at the end of the line too, and takes what is enqueued there', async () => {
    const task = bench.task()
    let isDear = true
    const take = takerOn(interrupted(bench.store, async (moment) => {
      if (moment === 'before transaction' && isDear) await sleep(500)
      isDear = false
    }), task)
    await enqueue(bench.store, task, [{ label: 'a' }, { label: 'b' }, { label: 'c' }])
    const taken = [await take(2), await take(2)]
    await enqueue(bench.store, task, [{ label: 'better', priority: -1 }, { label: 'd' }])

    assert.deepEqual([...taken, await take(2)], [['ab', true], ['c', false], ['d', false]])
  })
})

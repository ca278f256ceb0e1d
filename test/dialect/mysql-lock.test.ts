/** The lock of migrations in a cluster, where only what is committed is known to all nodes. On one server here; scripts/ha galera has three. */
import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { underLease } from '../../src/dialect/mysql-lock.ts'
import { migrate } from '../../src/runtime/schema.ts'
import { Bench } from '../support/ledgers.ts'
import { onlyOn } from '../support/only-on.ts'

for (const name of ['mariadb', 'mysql'] as const) {
  onlyOn(name, 'lock of a cluster', (db) => {
    const bench = new Bench(db)
    before(async () => {
      await bench.prepare()
    })

    it('lets one of many work at a time', async (t) => {
      t.after(() => bench.close())
      const stores = await Promise.all(Array.from({ length: 4 }, () => bench.openStore()))
      let [working, together] = [0, 0]
      await Promise.all(stores.map((store) => underLease(store.db, async () => {
        together = Math.max(together, ++working)
        await sleep(30)
        working--
      })))
      assert.equal(together, 1)
      assert.deepEqual(await db.admin('select holder, held_until from runledger_lock', bench.url), [{ holder: null, held_until: null }])
    })

    it('waits for one that is alive, and takes over from one whose lease has run out', async (t) => {
      const store = await bench.openStore()
      t.after(() => store.close())
      await db.admin(`update runledger_lock set holder = 'dead', held_until = utc_timestamp(6) + interval 900000 microsecond`, bench.url)
      let entered = false
      const waiting = underLease(store.db, async () => void (entered = true))
      await sleep(300)
      assert.equal(entered, false)
      await waiting
      assert.equal(entered, true)
      assert.deepEqual(await migrate(bench.url), [])
    })
  })
}

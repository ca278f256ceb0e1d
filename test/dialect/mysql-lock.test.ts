/** The lock of migrations in a cluster, where only what is committed is known to all nodes. On one server here; scripts/ha galera has three. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { underLease, type MigrationLock } from '../../src/dialect/mysql-lock.ts'
import { migrate } from '../../src/runtime/schema.ts'
import type { Store } from '../../src/store/tables.ts'
import { Bench } from '../support/ledgers.ts'
import { onlyOn } from '../support/only-on.ts'

const lockOf = ({ table, diagnose }: Store): MigrationLock => ({ table: table('runledger_lock'), diagnose })

for (const name of ['mariadb', 'mysql'] as const) {
  onlyOn(name, 'lock of a cluster', (db) => {
    const bench = new Bench(db)
    let url: string
    before(async () => {
      url = `${await db.url()}?table_prefix=app_`
      await migrate(url)
    })
    after(() => bench.close())

    it('lets one of many work at a time', async () => {
      const stores = await Promise.all(Array.from({ length: 4 }, () => bench.openStore({}, url)))
      let [working, together] = [0, 0]
      await Promise.all(stores.map((store) => underLease(store.db, lockOf(store), async () => {
        together = Math.max(together, ++working)
        await sleep(30)
        working--
      })))
      assert.equal(together, 1)
      assert.deepEqual(await db.admin('select holder, held_until from app_runledger_lock', url), [{ holder: null, held_until: null }])
    })

    it('waits for one that is alive, and takes over from one whose lease has run out', async () => {
      const store = await bench.openStore({}, url)
      await db.admin(`update app_runledger_lock set holder = 'dead', held_until = utc_timestamp(6) + interval 900000 microsecond`, url)
      let entered = false
      const waiting = underLease(store.db, lockOf(store), async () => void (entered = true))
      await sleep(300)
      assert.equal(entered, false)
      await waiting
      assert.equal(entered, true)
      assert.deepEqual(await migrate(url), [])
    })
  })
}

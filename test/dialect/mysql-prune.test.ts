/** How earlier claims are waited out where a lock is known to one node only. On one server here. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { outwaitClaims } from '../../src/dialect/mysql-prune.ts'
import { Bench } from '../support/ledgers.ts'
import { onlyOn } from '../support/only-on.ts'

for (const name of ['mariadb', 'mysql'] as const) {
  onlyOn(name, 'outwaited claims', (db) => {
    const bench = new Bench(db)
    before(() => bench.prepare())
    after(() => bench.close())

    it('in a cluster the row of the scope changes, so that other nodes hear of it; elsewhere it stays as it is', async () => {
      const { transaction, table } = bench.store
      const counters: number[] = []
      for (const isCluster of [false, false, true, true]) {
        await outwaitClaims(transaction, table('task_fences'), isCluster, ['scope'])
        const [row] = await db.admin(`select counter from task_fences where scope = 'scope'`, bench.url)
        counters.push(Number(row!['counter']))
      }
      assert.deepEqual(counters, [0, 0, 1, 2])
    })
  })
}

/** Both forms of the fenced insert give the same answers; scripts/ha galera shows why a cluster needs the second. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { sql } from 'kysely'
import { insertFenced, insertFencedStepwise } from '../../src/dialect/mysql-fenced.ts'
import { Bench } from '../support/ledgers.ts'
import { onlyOn } from '../support/only-on.ts'

for (const name of ['mariadb', 'mysql'] as const) {
  onlyOn(name, 'fenced insert', (db) => {
    const bench = new Bench(db)
    before(async () => {
      await bench.prepare()
      await db.admin('create table fenced (name varchar(40) primary key, fence bigint)', bench.url)
    })
    after(() => bench.close())

    for (const [form, insert] of [['script', insertFenced], ['stepwise', insertFencedStepwise]] as const) {
      it(`${form}: the fence grows by one, a bar inserts nothing and raises it, a violation undoes all of it`, async () => {
        const row = (task: string, unless = sql`select 1 from dual where 1 = 0`) => ({ scope: form, table: 'fenced', values: { name: task }, unless })
        const { db: on } = bench.store
        assert.deepEqual([await insert(on, row(`${form}-a`)), await insert(on, row(`${form}-b`)), await insert(on, row(`${form}-c`, sql`select 1 from dual`))], [1n, 2n, null])
        await assert.rejects(insert(on, row(`${form}-a`)), (error) => bench.store.diagnose(error).kind === 'duplicate')
        assert.equal(await insert(on, row(`${form}-d`)), 4n)
        assert.deepEqual((await db.admin(`select name, fence from fenced where name like '${form}-%' order by fence`, bench.url)).map(({ name: task, fence }) => `${String(task)} ${String(fence)}`), [`${form}-a 1`, `${form}-b 2`, `${form}-d 4`])
      })
    }
  })
}

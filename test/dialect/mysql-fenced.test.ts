/** Both forms of the fenced insert give the same answers; scripts/ha galera shows why a cluster needs the second. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { sql } from 'kysely'
import { insertFenced, insertFencedStepwise } from '../../src/dialect/mysql-fenced.ts'
import { migrate } from '../../src/runtime/schema.ts'
import { Bench } from '../support/ledgers.ts'
import { onlyOn } from '../support/only-on.ts'

const PREFIXES = ['', 'app_']

for (const name of ['mariadb', 'mysql'] as const) {
  onlyOn(name, 'fenced insert', (db) => {
    const bench = new Bench(db)
    before(async () => {
      await bench.prepare()
      for (const prefix of PREFIXES) {
        if (prefix !== '') await migrate(prefixed(prefix))
        await db.admin(`create table ${prefix}fenced (name varchar(40) primary key, fence bigint)`, bench.url)
      }
    })
    after(() => bench.close())

    const prefixed = (prefix: string) => `${bench.url}?table_prefix=${prefix}`

    for (const prefix of PREFIXES) for (const [form, insert] of [['script', insertFenced], ['stepwise', insertFencedStepwise]] as const) {
      it(`${form}, tables ${prefix}…: the fence grows by one, a bar inserts nothing and raises it, a violation undoes all of it`, async () => {
        const row = (task: string, unless = sql`select 1 from dual where 1 = 0`) => ({ scope: form, table: 'fenced', values: { name: task }, unless })
        const { db: on, table, diagnose } = await bench.openStore({}, prefixed(prefix))
        assert.deepEqual([await insert(on, table, row(`${form}-a`)), await insert(on, table, row(`${form}-b`)), await insert(on, table, row(`${form}-c`, sql`select 1 from dual`))], [1n, 2n, null])
        await assert.rejects(insert(on, table, row(`${form}-a`)), (error) => diagnose(error).kind === 'duplicate')
        assert.equal(await insert(on, table, row(`${form}-d`)), 4n)
        assert.deepEqual((await db.admin(`select name, fence from ${prefix}fenced where name like '${form}-%' order by fence`, bench.url)).map(({ name: task, fence }) => `${String(task)} ${String(fence)}`), [`${form}-a 1`, `${form}-b 2`, `${form}-d 4`])
      })
    }
  })
}

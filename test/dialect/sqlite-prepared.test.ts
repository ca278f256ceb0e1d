/** Statements of the SQLite driver are compiled once and used again, which nobody may notice. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { openStore } from '../../src/runtime/open-store.ts'

async function store() {
  return openStore('sqlite::memory:')
}

it('a statement that was used before answers with what is there now', async () => {
  const { db, close } = await store()
  await sql`create table t (a integer)`.execute(db)
  await sql`insert into t values (${1})`.execute(db)
  await sql`insert into t values (${2})`.execute(db)
  const read = () => sql`select * from t order by a`.execute(db)
  assert.deepEqual((await read()).rows, [{ a: 1 }, { a: 2 }])
  await sql`delete from t where a = ${1}`.execute(db)
  assert.deepEqual((await read()).rows, [{ a: 2 }])
  await close()
})

it('it sees a column that was added meanwhile', async () => {
  const { db, close } = await store()
  await sql`create table t (a integer)`.execute(db)
  await sql`insert into t values (1)`.execute(db)
  const read = () => sql`select * from t`.execute(db)
  await read()
  await sql`alter table t add column b text default 'new'`.execute(db)
  assert.deepEqual((await read()).rows, [{ a: 1, b: 'new' }])
  await close()
})

it('it works after an error', async () => {
  const { db, close } = await store()
  await sql`create table t (a integer primary key)`.execute(db)
  const insert = (a: number) => sql`insert into t values (${a})`.execute(db)
  await insert(1)
  await assert.rejects(insert(1), /UNIQUE/)
  await insert(2)
  assert.deepEqual((await sql`select count(*) as n from t`.execute(db)).rows, [{ n: 2 }])
  await close()
})

it('of more statements than it keeps, each answers for itself', async () => {
  const { db, close } = await store()
  const numbers = Array.from({ length: 250 }, (_, n) => n)
  const read = async (n: number) => (await sql<{ n: number }>`select ${sql.lit(n)} as n`.execute(db)).rows[0]!.n
  for (let turn = 0; turn < 2; turn++) {
    const answers: number[] = []
    for (const n of numbers) answers.push(await read(n))
    assert.deepEqual(answers, numbers)
  }
  await close()
})

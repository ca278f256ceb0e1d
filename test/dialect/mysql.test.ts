/** What is true of MySQL and MariaDB, or of MySQL alone: their own words for failure, and limits of a user. */
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { sql } from 'kysely'
import { openLedger } from '../../src/runtime/ledger.ts'
import { openStore } from '../../src/runtime/open-store.ts'
import { migrate } from '../../src/runtime/schema.ts'
import type { Store } from '../../src/store/tables.ts'
import { session, userUrl } from '../support/each-server.ts'
import { onlyOn } from '../support/only-on.ts'

for (const name of ['mysql', 'mariadb'] as const) {
  onlyOn(name, 'MySQL and MariaDB', (db) => {
    let url: string
    let store: Store
    before(async () => {
      url = await db.url()
      await migrate(url)
      store = await openStore(url)
      await store.db.insertInto('tasks').values({ task_name: 'locked' }).execute()
    })
    after(() => store.close())

    const LOCK = `select * from tasks where task_name = 'locked' for update`

    /** What an error means that a session meets while another one has the row. */
    async function diagnosisWhileLocked(setting: string, query: string, meanwhile: (id: number) => Promise<unknown> = async () => {}): Promise<string> {
      const [holder, other] = [await session(url), await session(url)]
      try {
        await holder.query('begin')
        await holder.query(LOCK)
        await other.query(setting)
        const [{ id } = {}] = await other.query('select connection_id() as id')
        const [end] = await Promise.allSettled([other.query(query), meanwhile(Number(id))])
        assert.ok(end.status === 'rejected')
        return store.diagnose(end.reason).kind
      } finally {
        await holder.end()
        await other.end()
      }
    }

    it('a lock timeout is transient', async () => {
      assert.equal(await diagnosisWhileLocked('set innodb_lock_wait_timeout = 1', LOCK), 'transient')
    })

    it('a row that is locked just now is transient', async () => {
      assert.equal(await diagnosisWhileLocked('do 0', `${LOCK} nowait`), 'transient')
    })

    it('a statement that somebody interrupted is transient', async () => {
      const interrupt = async (id: number) => {
        while ((await db.admin(`select 1 from information_schema.processlist where id = ${id} and info like '%for update%'`, url)).length === 0);
        await db.admin(`kill query ${id}`, url)
      }
      assert.equal(await diagnosisWhileLocked('do 0', LOCK, interrupt), 'transient')
    })

    it('a read-only transaction is a read-only database', async () => {
      const error: unknown = await store.db
        .connection()
        .execute(async (connection) => {
          await sql`start transaction read only`.execute(connection)
          await connection.deleteFrom('tasks').where('task_name', '=', 'x').execute()
        })
        .catch((reason: unknown) => reason)
      assert.deepEqual(store.diagnose(error), { kind: 'unavailable', problem: 'the database is read-only' })
    })

    it('a user who may only read is refused by name', async () => {
      const theirs = await userUrl(db, url, 'secret')
      const user = new URL(theirs).username
      await db.admin(`revoke all on ${new URL(url).pathname.slice(1)}.* from ${user}@'%'; grant select on ${new URL(url).pathname.slice(1)}.* to ${user}@'%'`, url)
      const ledger = await openLedger(theirs)
      const refusal = ledger.claim({ task: 'a', key: 'a' })
      await assert.rejects(refusal, { code: 'DATABASE_UNAVAILABLE', message: /lacks the right/ })
      await ledger.close()
    })

    it('the last connection of a user being taken is no answer yet', async () => {
      const theirs = await userUrl(db, url, 'secret')
      await db.admin(`alter user ${new URL(theirs).username}@'%' with max_user_connections 1`, url)
      const first = await session(theirs)
      const second: unknown = await session(theirs).catch((reason: unknown) => reason)
      await first.end()
      assert.equal(store.diagnose(second).kind, 'unavailable')
    })
  })
}

onlyOn('mysql', 'MySQL', (db) => {
  it('the primary key of a table that is not the ledger\'s is not ours', async (t) => {
    const store = await openStore(await db.url())
    t.after(() => store.close())
    await sql`create table audit (id integer primary key)`.execute(store.db)
    const insert = () => sql`insert into audit values (1)`.execute(store.db)
    await insert()
    assert.deepEqual(await insert().catch((error: unknown) => store.diagnose(error)), { kind: 'duplicate', constraint: 'audit.primary' })
  })

  it('a database that was set read-only refuses a launch by name', async (t) => {
    const url = await db.url()
    await migrate(url)
    const ledger = await openLedger(url, { connectTimeout: 0 })
    t.after(() => ledger.close())
    await db.admin(`alter database ${new URL(url).pathname.slice(1)} read only = 1`, url)
    t.after(() => db.admin(`alter database ${new URL(url).pathname.slice(1)} read only = 0`, url))
    await assert.rejects(ledger.claim({ task: 'a', key: 'a' }), { code: 'DATABASE_UNAVAILABLE', message: /read-only/ })
  })

  it('a statement that took longer than the server allows is transient', async (t) => {
    const store = await openStore(await db.url())
    t.after(() => store.close())
    const error: unknown = await sql`select /*+ max_execution_time(50) */ count(*) from information_schema.columns a, information_schema.columns b`.execute(store.db).catch((reason: unknown) => reason)
    assert.equal(store.diagnose(error).kind, 'transient')
  })
})

/** What is true of MariaDB alone. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { openStore } from '../../src/runtime/open-store.ts'
import { onlyOn } from '../support/only-on.ts'

onlyOn('mariadb', 'MariaDB', (db) => {
  it('a statement that took longer than the server allows is transient', async (t) => {
    const store = await openStore(await db.url())
    t.after(() => store.close())
    const error: unknown = await sql`set statement max_statement_time = 0.05 for select sleep(5) from information_schema.tables`.execute(store.db).catch((reason: unknown) => reason)
    assert.equal(store.diagnose(error).kind, 'transient')
  })

  it('says by its name and version where the ledger is', async (t) => {
    const store = await openStore(await db.url())
    t.after(() => store.close())
    assert.match(store.place, /^MariaDB \d+\.\d+\.\d+ at 127\.0\.0\.1:\d+\/runledger_/)
  })
})

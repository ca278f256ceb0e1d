/** Instants are UTC on every connection, whatever the host, the server or the URL think. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { eachServerLedger } from '../support/each-server.ts'
import { startFixture } from '../support/fixture-process.ts'

eachServerLedger('time zone', (bench) => {
  it('case 44: with timezone=UTC in the URL, a host in Tokyo stores the instants that it means', async (t) => {
    const task = bench.task()
    const host = await startFixture(t, 'fault/fixture-zone.ts', [`${bench.url}?timezone=UTC`, task, '2026-03-08T07:30:00Z', 'claim'], { TZ: 'Asia/Tokyo' }).says('instants')

    const { store } = bench
    const { rows } = await sql<{ off: number; age: number }>`
      select ${store.secondsBetween(store.instant(new Date('2026-03-08T07:00:00Z')), sql.ref('window_start'))} as off, ${store.secondsBetween(sql.ref('heartbeat_at'), store.now())} as age
      from ${store.table('task_runs')} where task_name = ${task}`.execute(store.db)
    const [{ off, age }] = rows as [{ off: number; age: number }]
    const [windowStart, , , heartbeatAt] = host['instants'] as number[]

    assert.deepEqual([host['offset'], Number(off), windowStart], [-540, 0, Date.parse('2026-03-08T07:00:00Z')])
    assert.ok(Number(age) >= 0 && Number(age) < 20, `age ${age} s`)
    assert.ok(Math.abs(Date.now() - heartbeatAt!) < 20_000)
  })
})

/** Migrations that are killed half way: the next start completes them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { it } from 'node:test'
import { migrate } from '../../src/runtime/schema.ts'
import { bundled } from '../support/bundled.ts'
import { eachDatabase, type Row } from '../support/databases.ts'
import { schemaOf } from './schema-of.ts'

/** Kills of a migration that began with nothing, spread over its statements; RUNLEDGER_MIGRATE_KILLS=1000 is each of them. */
const SINGLE_KILLS = Number(process.env['RUNLEDGER_MIGRATE_KILLS'] ?? 8)

const programs = bundled(import.meta.dirname, 'fixture-killed.ts')

eachDatabase('killed migrations', (db) => {
  it('case 47: killed after any of its statements, start after start, a migration is completed by the next one', async () => {
    const complete = await db.url()
    const statements = Number((await killedAfter(complete, 0)).statements)
    const expected = await schemaOf(db, complete)
    assert.ok(statements > 10 && expected.length > 10)
    const url = await db.url()
    // Where every statement commits by itself, the next start finds more of them done: it is killed later each time until nothing is left to do.
    for (let after = 1; after <= statements; after++) {
      const { signal } = await killedAfter(url, after)
      if (signal === null) break
      assert.equal(signal, 'SIGKILL', `after statement ${after}`)
    }
    await isCompleted(url, expected, 'after a kill at every statement')
  })

  it('case 47: from an empty database too, wherever it is killed, one more start is enough', async () => {
    const complete = await db.url()
    const statements = Number((await killedAfter(complete, 0)).statements)
    const expected = await schemaOf(db, complete)
    for (let after = 1; after <= statements; after += Math.ceil(statements / SINGLE_KILLS)) {
      const url = await db.url()
      assert.equal((await killedAfter(url, after)).signal, 'SIGKILL', `after statement ${after}`)
      await isCompleted(url, expected, `after statement ${after}`)
    }
  })

  async function isCompleted(url: string, expected: Row[], when: string): Promise<void> {
    await migrate(url)
    assert.deepEqual(await migrate(url), [], `${when} the second run is a no-op`)
    assert.deepEqual(await schemaOf(db, url), expected, `${when} the schema is whole`)
  }
}, { atOnce: true })

async function killedAfter(url: string, statements: number): Promise<{ signal: NodeJS.Signals | null; statements?: number }> {
  const child = programs.fork('fixture-killed.ts', [url, String(statements)])
  let said = {}
  child.on('message', (message: object) => (said = message))
  const [, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  return { signal, ...said }
}

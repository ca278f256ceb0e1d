/** Migrations that many start at once, or that meet a schema of another version. */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { after, before, it } from 'node:test'
import { openLedger } from '../../src/runtime/ledger.ts'
import { migrate, migrationStatus } from '../../src/runtime/schema.ts'
import { bundled } from '../support/bundled.ts'
import { eachDatabase, type DatabaseName } from '../support/databases.ts'
import { schemaOf } from './schema-of.ts'

/** Rounds in which ten processes migrate one empty database at once; RUNLEDGER_MIGRATE_ROUNDS sets it for all databases. */
const ROUNDS: Record<DatabaseName, number> = { sqlite: 10, postgres: 5, mariadb: 2, mysql: 2 }
const PODS = 10

const programs = bundled(import.meta.dirname, 'fixture-pod.ts')
let pods: ChildProcess[] = []
before(async () => {
  pods = await Promise.all(Array.from({ length: PODS }, startPod))
})
after(() => {
  for (const pod of pods) pod.kill()
})

eachDatabase('migrate', (db) => {
  it('brings an empty database up, and has nothing to do the second time', async () => {
    const url = await db.url()
    const before = await migrationStatus(url)
    const applied = await migrate(url)
    const again = await migrate(url)
    assert.ok(before.length > 0 && before.every(({ appliedAt, known }) => appliedAt === null && known))
    assert.deepEqual(applied, before.map(({ name }) => name))
    assert.deepEqual(again, [])
    assert.ok((await migrationStatus(url)).every(({ appliedAt }) => appliedAt !== null && Math.abs(Date.now() - appliedAt.getTime()) < 60_000))
  })

  it('refuses a schema that a newer version has been at, and changes nothing there', async () => {
    const url = await db.url()
    await migrate(url)
    await db.admin(`insert into runledger_migrations (name, applied_at) select '9999-of-a-newer-version', max(applied_at) from runledger_migrations`, url)
    const before = await schemaOf(db, url)
    await assert.rejects(openLedger(url), { code: 'SCHEMA_AHEAD', message: /9999-of-a-newer-version/ })
    await assert.rejects(migrate(url), { code: 'SCHEMA_AHEAD' })
    assert.deepEqual(await schemaOf(db, url), before)
    assert.deepEqual((await migrationStatus(url)).at(-1)?.known, false)
  })

  it(`case 74: ${PODS} processes that migrate an empty database at once all succeed, and each migration is applied once`, async () => {
    const rounds = Number(process.env['RUNLEDGER_MIGRATE_ROUNDS'] ?? ROUNDS[db.name])
    for (let round = 1; round <= rounds; round++) {
      const url = await db.url()
      const answers = await Promise.all(pods.map((pod) => ask(pod, url)))
      assert.deepEqual(answers.filter(({ error }) => error !== undefined), [], `round ${round}`)
      const names = (await migrationStatus(url)).map(({ name }) => name)
      assert.deepEqual(answers.flatMap(({ applied }) => applied).toSorted(), names, `round ${round}`)
      assert.deepEqual((await db.admin('select name from runledger_migrations order by name', url)).map(({ name }) => name), names)
    }
  })
})

async function startPod(): Promise<ChildProcess> {
  const pod = programs.fork('fixture-pod.ts')
  await once(pod, 'message')
  return pod
}

async function ask(pod: ChildProcess, url: string): Promise<{ applied?: string[]; error?: string }> {
  pod.send(url)
  const [answer] = (await once(pod, 'message')) as [{ applied?: string[]; error?: string }]
  return answer
}

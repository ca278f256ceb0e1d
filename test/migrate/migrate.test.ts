/** Migrations that many start at once, that are killed half way, or that meet a schema of another version. */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { after, before, it } from 'node:test'
import { openLedger } from '../../src/runtime/ledger.ts'
import { migrate, migrationStatus } from '../../src/runtime/schema.ts'
import { bundled } from '../support/bundled.ts'
import { eachDatabase, type DatabaseName, type Row, type TestDatabase } from '../support/databases.ts'

/** Rounds in which ten processes migrate one empty database at once; RUNLEDGER_MIGRATE_ROUNDS sets it for all databases. */
const ROUNDS: Record<DatabaseName, number> = { sqlite: 10, postgres: 5, mariadb: 2, mysql: 2 }
/** Kills of a migration that began with nothing, spread over its statements; RUNLEDGER_MIGRATE_KILLS=1000 is each of them. */
const SINGLE_KILLS = Number(process.env['RUNLEDGER_MIGRATE_KILLS'] ?? 8)
const PODS = 10

/** Everything the schema is made of: columns, constraints and indexes, in an order of their own. */
const SCHEMA: Record<DatabaseName, string> = {
  sqlite: `select type, name, sql from sqlite_master where name not like 'sqlite_%' order by type, name`,
  postgres: `select 'column' as kind, table_name || '.' || column_name as name, data_type || coalesce(collation_name, '') || is_nullable || coalesce(column_default, '') as what from information_schema.columns where table_schema = 'public'
    union all select 'index', indexname, indexdef from pg_indexes where schemaname = 'public'
    union all select 'constraint', conname, pg_get_constraintdef(oid) from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2, 3`,
  mariadb: mysqlSchema(),
  mysql: mysqlSchema(),
}

function mysqlSchema(): string {
  return `select 'column' as kind, concat(table_name, '.', column_name) as name, concat_ws(' ', column_type, collation_name, is_nullable, column_default) as what from information_schema.columns where table_schema = database()
    union all select 'index', concat(index_name, '.', seq_in_index), concat_ws(' ', table_name, column_name, non_unique) from information_schema.statistics where table_schema = database()
    union all select 'constraint', constraint_name, check_clause from information_schema.check_constraints where constraint_schema = database() order by 1, 2, 3`
}

const programs = bundled(import.meta.dirname, 'fixture-killed.ts', 'fixture-pod.ts')
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

function schemaOf(db: TestDatabase, url: string): Promise<Row[]> {
  return db.admin(SCHEMA[db.name], url)
}

async function killedAfter(url: string, statements: number): Promise<{ signal: NodeJS.Signals | null; statements?: number }> {
  const child = programs.fork('fixture-killed.ts', [url, String(statements)])
  let said = {}
  child.on('message', (message: object) => (said = message))
  const [, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  return { signal, ...said }
}

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

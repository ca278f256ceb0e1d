/** `runledger selftest`: anybody's own database, checked under crashes, and left as it was. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, it } from 'node:test'
import { bundleProgram } from '../../scripts/proof/programs.ts'
import { PROMISES } from '../../src/proof/promises.ts'
import { MUTANTS } from '../proof/mutants.ts'
import { eachDatabase, type TestDatabase } from '../support/databases.ts'
import { eachServer, userUrl } from '../support/each-server.ts'
import { embeddedLedger, gone, ledgerOn, newFolder, processesWith, run, until } from '../support/cli.ts'

const LEFT: Record<TestDatabase['name'], string | null> = {
  sqlite: null,
  postgres: `select nspname as name from pg_namespace where nspname like 'runledger_selftest%'`,
  mariadb: `select schema_name as name from information_schema.schemata where schema_name like 'runledger_selftest%'`,
  mysql: `select schema_name as name from information_schema.schemata where schema_name like 'runledger_selftest%'`,
}

eachDatabase('selftest', (db) => {
  const ledger = ledgerOn(db)

  /** Where of this name something is still there. */
  async function left(name: string): Promise<unknown[]> {
    const query = LEFT[db.name]
    const all = query === null ? readdirSync(dirname(ledger.url.slice('sqlite:'.length))) : (await ledger.sql(query)).map((row) => row['name'])
    return all.filter((one) => name.endsWith(String(one)) && /selftest/.test(String(one)))
  }

  it('gives a verdict on each promise and the figures, as JSON, and removes what it made; the own ledger is as it was', async () => {
    const { code, stdout, stderr } = await ledger.run(['selftest', '--seconds', '1', '--seed', '7', '--json'])
    assert.equal(code, 0, stdout + stderr)
    const lines = stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
    const figures = lines.pop()!
    assert.deepEqual(lines.map(({ promise, kept, broken }) => [promise, kept, broken]), Object.keys(PROMISES).map((promise) => [promise, true, []]))
    assert.ok(lines.every(({ looked }) => Number(looked) > 0), 'each promise was looked at')
    assert.deepEqual([figures['runs'], Number(figures['starts']) >= 340], [340, true])
    assert.deepEqual(await left(placeOf(stderr)), [])
    assert.deepEqual(await ledger.sql('select * from task_runs'), [])
  })

  it('removes what it made after Ctrl-C as well, with all of its processes', async (t) => {
    const running = ledger.start(t, ['selftest', '--seconds', '600'])
    const place = placeOf(await running.line(/status=selftest/))
    // In the middle of a round: its workers and the reaper are there, and what they work in.
    await until(() => processesWith(running.mark).length >= 6, 'a whole crew')
    assert.equal((await left(place)).length > 0, true)
    running.process.kill('SIGINT')
    assert.equal((await running.end).code, 130)
    assert.deepEqual(await left(place), [])
  })
})

eachServer('selftest without rights', (db) => {
  it('works in tables of its own where the user may make no schema and no database, and removes them; others stay', async () => {
    const url = await db.url()
    const theirs = await userUrl(db, url, 'secret')
    // What a database's owner may do on PostgreSQL is more than is to be had here.
    if (db.name === 'postgres') await db.admin(`alter database ${new URL(url).pathname.slice(1)} owner to current_user; grant connect on database ${new URL(url).pathname.slice(1)} to public`, url)
    await db.admin('create table task_runs (id integer)', url)
    const { code, stdout, stderr } = await run(['selftest', '--seconds', '1', '--db', theirs])
    assert.equal(code, 0, stdout + stderr)
    assert.match(placeOf(stderr), /^tables selftest_[0-9a-f]{8}_…$/)
    const catalogue = db.name === 'postgres' ? 'current_schema()' : 'database()'
    assert.deepEqual(await db.admin(`select lower(table_name) as name from information_schema.tables where table_schema in (${catalogue})`, url), [{ name: 'task_runs' }])
  })
})

describe('selftest', () => {
  const ledger = embeddedLedger()

  it('exits 1 and says what was broken, where a guard is missing', async (t) => {
    const mutant = MUTANTS.find(({ without }) => without === 'active_key')!
    const main = await bundleProgram(newFolder(t), 'src/cli/main.ts', mutant.edits)
    const { status, stdout } = spawnSync(process.execPath, [main, 'selftest', '--seconds', '1', '--db', ledger.url], { encoding: 'utf8' })
    assert.equal(status, 1, stdout)
    assert.match(stdout, /^BROKEN \d+ +\d+ +At most one run of a concurrency key/m)
    assert.match(stdout, /^exclusion: selftest-1-alone:\d+ attempt \d+/m)
  })

  it('leaves no process behind when it is killed itself', async (t) => {
    const running = ledger.start(t, ['selftest', '--seconds', '600'])
    // Its workers and the reaper, which goes on until it is told to stop.
    await until(() => processesWith(running.mark).length >= 6, 'a whole crew')
    running.process.kill('SIGKILL')
    await running.end
    await gone(running.mark)
  })

  it('refuses a word, and a time that is none, before anything is made', async () => {
    for (const args of [['now'], ['--seconds', '0'], ['--seconds', 'x'], ['--seed', '-1']]) assert.equal((await ledger.run(['selftest', ...args])).code, 64, args.join(' '))
  })
})

function placeOf(log: string): string {
  return /place="([^"]+)"/.exec(log)![1]!
}

/** `runledger migrate`: up applies what is missing, status says what that is, and the exit code is the verdict. */
import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { migrations } from '../../migrations/index.ts'
import { run } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

const names = migrations.map(({ name }) => name)
const each = (line: (name: string) => string) => names.map((name) => `${line(name)}\n`).join('')

eachDatabase('migrate', (db) => {
  let env: NodeJS.ProcessEnv
  before(async () => {
    env = { RUNLEDGER_DB: await db.url() }
  })
  const migrate = (...words: string[]) => run(['migrate', ...words], { env })

  it('status of an empty database lists what is missing, changes nothing, and is 78', async () => {
    for (let n = 0; n < 2; n++) {
      const { code, stdout, stderr } = await migrate('status')
      assert.deepEqual([code, stdout, stderr], [78, each((name) => `${name}  missing`), ''])
    }
    assert.deepEqual((await migrate('status', '--json')).stdout, each((name) => `{"name":"${name}","applied_at":null,"known":true}`))
  })

  it('case 74: of several that begin at once each succeeds, and each migration is applied once', async () => {
    const ran = await Promise.all([migrate(), migrate('up'), migrate('up'), migrate()])
    assert.deepEqual(ran.map(({ code, stderr }) => [code, stderr]), ran.map(() => [0, '']))
    assert.deepEqual(ran.map(({ stdout }) => stdout).toSorted(), [each((name) => `applied ${name}`), ...Array<string>(3).fill('the schema is up to date\n')])
    assert.deepEqual(await db.admin('select name from runledger_migrations order by name'), names.map((name) => ({ name })))
  })

  it('status of a current schema says since when, and is 0; up has nothing to do', async () => {
    const { code, stdout } = await migrate('status')
    assert.equal(code, 0)
    assert.match(stdout, new RegExp(`^${each((name) => `${name}  applied \\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z`)}$`))
    assert.deepEqual([(await migrate()).stdout, (await migrate('--json')).stdout], ['the schema is up to date\n', '{"applied":[]}\n'])
  })

  it('a schema that a newer version has been at is 78 for status and for up, and stays as it is', async () => {
    await db.admin(`insert into runledger_migrations (name, applied_at) select '9999-later', max(applied_at) from runledger_migrations`)
    const [status, up] = [await migrate('status'), await migrate('up')]
    assert.deepEqual([status.code, up.code, up.stdout], [78, 78, ''])
    assert.match(status.stdout, /\n9999-later {2}unknown to this version\n$/)
    assert.match(up.stderr, /^runledger: SCHEMA_AHEAD: [^\n]*9999-later[^\n]*\n$/)
    assert.deepEqual((await db.admin('select name from runledger_migrations order by name')).map(({ name }) => name), [...names, '9999-later'])
  })
})

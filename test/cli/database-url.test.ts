/** Which database a command works on, and where a user's own one is when nobody says. */
import assert from 'node:assert/strict'
import { chmodSync, chownSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { BINARY, cannotUnshare, newFolder, run } from '../support/cli.ts'

const isRoot = process.getuid?.() === 0
const NOBODY = 65534
/** Some user who is not root: root becomes nobody, who must be able to read the checkout. */
const asUser = isRoot ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : []
const noUser = isRoot && !isOpen(BINARY) && 'the checkout cannot be read by anybody but root'

function isOpen(path: string): boolean {
  for (let at = path; at !== '/'; at = join(at, '..')) if ((statSync(at).mode & (at === path ? 0o4 : 0o1)) === 0) return false
  return true
}

describe('database', () => {
  const folder = newFolder()
  const at = (name: string) => join(folder, name)
  const runs = async (env: NodeJS.ProcessEnv, ...flags: string[]) => run(['runs', ...flags], { env })

  it('--db stands before RUNLEDGER_DB, and that before RUNLEDGER_DB_FILE', async () => {
    writeFileSync(at('url'), `sqlite:${at('file.db')}\n`)
    const env = { RUNLEDGER_DB: `sqlite:${at('env.db')}`, RUNLEDGER_DB_FILE: at('url') }
    assert.equal((await runs(env, '--db', `sqlite:${at('flag.db')}`)).stdout, 'no runs\n')
    assert.deepEqual(['flag.db', 'env.db', 'file.db'].map((name) => existsSync(at(name))), [true, false, false])
    await runs(env)
    assert.deepEqual(['env.db', 'file.db'].map((name) => existsSync(at(name))), [true, false])
    await runs({ RUNLEDGER_DB_FILE: at('url') })
    assert.ok(existsSync(at('file.db')))
  })

  it('a RUNLEDGER_DB_FILE that cannot be read is said, not passed over for the default', async () => {
    const { code, stdout, stderr } = await runs({ RUNLEDGER_DB_FILE: at('missing'), HOME: at('home') })
    assert.deepEqual([code, stdout, existsSync(at('home'))], [64, '', false])
    assert.match(stderr, /^runledger: INVALID_OPTION: RUNLEDGER_DB_FILE: .*missing cannot be read \(ENOENT\)\n$/)
  })

  it('a SQLite file makes its folders and itself, readable by its owner and group alone', async () => {
    await runs({}, '--db', `sqlite:${at('new/folders/ledger.db')}`)
    assert.equal(statSync(at('new/folders/ledger.db')).mode & 0o777, 0o640)
  })

  it("a user's own ledger is in the XDG state folder, the same from every working directory", { skip: noUser }, async () => {
    const home = newFolder()
    if (isRoot) chownSync(home, NOBODY, NOBODY)
    chmodSync(home, 0o700)
    const launch = (cwd: string, env: NodeJS.ProcessEnv) => run(['exec', '--task', 'a', '--key', 'k', '--conflict-exit-code', '3', '--', 'true'], { under: asUser, cwd, env: { HOME: home, ...env } })
    assert.deepEqual([(await launch('/', {})).code, (await launch('/tmp', { XDG_STATE_HOME: 'relative' })).code], [0, 3])
    assert.ok(existsSync(join(home, '.local/state/runledger/ledger.db')))
    assert.equal((await launch('/', { XDG_STATE_HOME: join(home, 'state') })).code, 0)
    assert.ok(existsSync(join(home, 'state/runledger/ledger.db')))
  })

  it("root's is one for the whole host", { skip: isRoot ? cannotUnshare('--mount') : 'only root has it' }, async () => {
    const host = newFolder()
    mkdirSync(join(host, 'var'))
    const elsewhere = ['unshare', '--mount', 'sh', '-c', `mount --bind ${host}/var /var/lib && exec "$@"`, 'sh']
    const launch = (cwd: string) => run(['exec', '--task', 'a', '--key', 'k', '--conflict-exit-code', '3', '--', 'true'], { under: elsewhere, cwd, env: { XDG_STATE_HOME: join(host, 'state') } })
    assert.deepEqual([(await launch('/')).code, (await launch('/tmp')).code], [0, 3])
    assert.deepEqual([existsSync(join(host, 'var/runledger/ledger.db')), existsSync(join(host, 'state'))], [true, false])
  })

  it('a file that its user may not write is refused, and the job is not started', { skip: noUser }, async () => {
    const readOnly = newFolder()
    await runs({}, '--db', `sqlite:${join(readOnly, 'ledger.db')}`)
    chmodSync(join(readOnly, 'ledger.db'), 0o444)
    chmodSync(readOnly, 0o555)
    const marker = join(newFolder(), 'marker')
    const ran = await run(['exec', '--task', 'a', '--', 'touch', marker], { under: asUser, env: { RUNLEDGER_DB: `sqlite:${join(readOnly, 'ledger.db')}` } })
    chmodSync(readOnly, 0o755)
    assert.deepEqual([ran.code, existsSync(marker)], [69, false])
    assert.match(ran.stderr, /^runledger: DATABASE_UNAVAILABLE: SQLite file \S+: permission denied\n$/)
  })
})

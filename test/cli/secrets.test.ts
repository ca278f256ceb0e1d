/** A password stands where it was put, and nowhere else: not in a line, not in a row, not in `ps`. */
import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { TestContext } from 'node:test'
import { cannotUnshare, fieldsOf, kill, ledgerOn, newFolder, procFile, processesWith, run, sh, start, until } from '../support/cli.ts'
import { eachServer, userUrl } from '../support/each-server.ts'

const SECRET = 'hunter2-marker'
const CONTAINER = ['--pid', '--fork', '--mount-proc', '--kill-child']

describe('secrets', () => {
  const malformed = [
    SECRET, `//u:${SECRET}@h/db`, `http://u:${SECRET}@h/db`, `postgres//u:${SECRET}@h/db`, `postgres:/u:${SECRET}@h/db`, `postgres://u:${SECRET}@h:port/db`,
    `postgres://u:${SECRET}@h:99999/db`, `postgres://u:${SECRET}/x@h/db`, `postgres://u:${SECRET}#x@h/db`, `postgres://u:x?${SECRET}@h/db`, `postgres://u:x?${SECRET}=1@h/db`,
    `postgres://u:${SECRET}%@h/db`, `postgres://u:${SECRET}%zz@h/db`, `mysql://u:${SECRET} x@h:y/db`, `mysql://u:${SECRET}@[::1/db`, `mysql://u:${SECRET}@h/db?timezone=Mars`,
    `mysql://u:${SECRET}@h/db?${SECRET}`, `MYSQL://u@${SECRET}@h:x/db`, `postgres://u:${SECRET}@h/db?sslmode=perhaps`, 'sqlite:', `sqlite://u:${SECRET}@h/db`,
  ]

  it('a malformed URL is refused without a part of it, wherever it was given, with RUNLEDGER_DEBUG as well', async () => {
    const file = join(newFolder(), 'url')
    const ways = (url: string) => [
      run(['exec', '--db', url, '--task', 't', '--', 'true']),
      malformed.indexOf(url) % 2 === 0 ? run(['migrate'], { env: { RUNLEDGER_DB: url, RUNLEDGER_DEBUG: '1' } }) : run(['runs'], { env: { RUNLEDGER_DB_FILE: file } }),
    ]
    for (const url of malformed) {
      writeFileSync(file, url)
      for (const { code, stdout, stderr } of await Promise.all(ways(url))) {
        assert.deepEqual([code, stdout], [64, ''], `${url}: ${stderr}`)
        assert.match(stderr, /^runledger: INVALID_OPTION: db: [^\n]+\n/)
        assert.doesNotMatch(stderr, new RegExp(SECRET), url)
      }
    }
  })

  it('nor does an error about a server that is not there repeat it', async () => {
    for (const scheme of ['postgres', 'mysql']) {
      const { code, stderr } = await run(['exec', '--db', `${scheme}://u:${SECRET}@127.0.0.1:1/db`, '--connect-timeout', '0s', '--task', 't', '--', 'true'], { env: { RUNLEDGER_DEBUG: '1' } })
      assert.equal(code, 69)
      assert.doesNotMatch(stderr, new RegExp(SECRET))
    }
  })
})

eachServer('secrets', (db) => {
  const ledger = ledgerOn(db)

  async function withPassword(): Promise<string> {
    const url = await userUrl(db, ledger.url, SECRET)
    const database = new URL(url).pathname.slice(1)
    if (db.name === 'postgres') await ledger.sql(`grant all on all tables in schema public to ${new URL(url).username}; grant all on all sequences in schema public to ${new URL(url).username}`)
    assert.ok(url.includes(SECRET) && database !== '')
    return url
  }

  /** What anybody on the machine can see of every process of the command line that bears the mark, while it runs. */
  async function seen(t: TestContext, url: string, task: string, under: readonly string[] = []) {
    const running = start(t, ['exec', '--task', task, `--db`, url, ...sh('echo ready; sleep 300')], { under, env: { RUNLEDGER_DB: 'sqlite:nowhere/but/here' } })
    const { instance } = fieldsOf(await running.line(/status=started/))
    const theirs = await until(() => processesWith(instance!).length >= 3 && [...processesWith(instance!), ...processesWith(`exec --task ${task} `), ...processesWith('runledger-init')], 'the job')
    const lines = [running.pid, ...theirs].map((pid) => procFile(pid, 'cmdline').replaceAll('\0', ' '))
    for (const pid of processesWith(instance!)) if (procFile(pid, 'comm') === 'sleep\n') kill(pid, 'SIGKILL')
    return { lines, ...(await running.end) }
  }

  it('a password in --db is not on the command line of the wrapper, of its helpers or of the job, nor in log or rows', async (t) => {
    const { lines, code, stdout, stderr } = await seen(t, await withPassword(), 'visible')
    assert.equal(code, 137)
    assert.ok(lines.some((line) => line.startsWith('runledger exec')))
    assert.doesNotMatch(lines.join('\n') + stdout + stderr, new RegExp(SECRET))
    for (const table of ['task_runs', 'task_attempts', 'task_fences', 'tasks']) assert.doesNotMatch(JSON.stringify(await ledger.sql(`select * from ${table}`)), new RegExp(SECRET))
  })

  it('not when it is process 1 and starts itself again either, and the database is still that of --db', { skip: cannotUnshare(...CONTAINER) }, async (t) => {
    const { lines, code, stderr } = await seen(t, await withPassword(), 'contained', ['unshare', ...CONTAINER])
    const [unshare = '', ...others] = lines
    assert.ok(unshare.startsWith('unshare ') && others.some((line) => line.includes('runledger-init')))
    assert.doesNotMatch(others.join('\n') + stderr, new RegExp(SECRET))
    assert.deepEqual([code, await ledger.sql(`select status from task_runs where task_name = 'contained'`)], [137, [{ status: 'failed' }]])
  })

  it('RUNLEDGER_DB_FILE keeps it off every command line and out of the environment of the job', async (t) => {
    const file = join(newFolder(t), 'url')
    writeFileSync(file, `${await withPassword()}\n`)
    chmodSync(file, 0o600)
    const { code, stdout, stderr } = await run(['exec', '--task', 'file', ...sh('env; tr "\\0" " " </proc/$PPID/cmdline')], { env: { RUNLEDGER_DB_FILE: file } })
    assert.equal(code, 0)
    assert.match(stdout, /RUNLEDGER_TASK=file/)
    assert.doesNotMatch(stdout + stderr, new RegExp(SECRET))
  })
})

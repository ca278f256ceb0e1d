/** Case 72: every command runs under exactly the rights that `runledger grants` prints for its role, and names the one it lacks under less. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { before, it, type TestContext } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import { ROLE_OF_COMMAND } from '../../src/cli/roles.ts'
import { jsonLine } from '../../src/cli/log.ts'
import { claimJson, migrate, openLedger, ROLES, type Role } from '../../src/index.ts'
import { openStore } from '../../src/runtime/open-store.ts'
import { run, start, type Ran } from '../support/cli.ts'
import { eachServer, type TestServer } from '../support/each-server.ts'
import { OLD, oldWindows, windowKey } from '../support/old-runs.ts'

const PREFIX = 'app_'

it('every command has its role', () => {
  assert.deepEqual(Object.keys(ROLE_OF_COMMAND), Object.keys(COMMANDS))
})

it('of a SQLite file it says who must be able to open it, as commands of a shell', async () => {
  const { code, stdout } = await run(['grants', '--role', 'reader', '--db', `sqlite:/tmp/it's here/l.db`])
  assert.equal(code, 0)
  assert.match(stdout, /^chmod 2770 '\/tmp\/it'\\''s here'$/m)
  const { rmSync } = await import('node:fs')
  rmSync(`/tmp/it's here`, { recursive: true, force: true })
})

for (const [what, args] of [['no role', []], ['an unknown role', ['--role', 'king']], ['a user that is SQL', ['--role', 'reader', '--user', `x"; drop table t;--`]]] as const) {
  it(`${what} is one line and exit 64`, async () => {
    const { code, stdout, stderr } = await run(['grants', ...args, '--db', 'sqlite::memory:'])
    assert.deepEqual([code, stdout, stderr.trimEnd().split('\n').length], [64, '', 1])
  })
}

/** As each command is tried; with `claim` in its environment where it goes on with one. */
const TRIES: Readonly<Record<string, (task: string) => readonly string[] | Promise<readonly string[]>>> = {
  exec: (task) => ['exec', '--task', `${task}-x`, '--every', '1h', '--', 'true'],
  enqueue: (task) => ['enqueue', '--task', `${task}-q`],
  work: (task) => ['work', '--task', `${task}-q`, '--', 'true'],
  why: (task) => ['why', task],
  cancel: (task) => ['cancel', windowKey(`${task}-dead`, 0)],
  retry: (task) => ['retry', windowKey(task, 1), '--force'],
  pause: (task) => ['pause', task],
  resume: (task) => ['resume', `${task}-paused`],
  actions: () => ['actions'],
  tasks: () => ['tasks'],
  missing: () => ['missing'],
  backfill: (task) => ['backfill', '--task', `${task}-b`, '--every', '1h', '--from', '2026-09-20T00:00Z', '--to', '2026-09-20T01:00Z', '--', 'true'],
  check: () => ['check', '--task', 'nobody'],
  metrics: () => ['metrics'],
  claim: (task) => ['claim', '--task', `${task}-y`, '--key', randomBytes(3).toString('hex')],
  heartbeat: () => ['heartbeat'],
  effect: () => ['effect', '--name', 'mail', '--', 'true'],
  hold: () => ['hold', '--pid', '0'], // In its place comes that of a process which ends once it is held.
  release: () => ['release'],
  complete: () => ['complete'],
  fail: () => ['fail'],
  effects: () => ['effects'],
  fence: () => ['fence', 'check', '--resource', 'r', '--token', '5'],
  reap: () => ['reap'],
  runs: () => ['runs'],
  show: (task) => ['show', `${task}:w000003`],
  prune: (task) => ['prune', '--older-than', '30d', '--task', task],
  verify: () => ['verify'],
  doctor: () => ['doctor'],
  migrate: () => ['migrate'],
}
/** What it says where all is well: `verify` finds the history that the test has made up, and `doctor` its dead owners. */
const CODES: Readonly<Record<string, number>> = { verify: 1, doctor: 1 }

eachServer('runledger grants', (db) => {
  let url = ''
  const as = new Map<Role, string>()
  const prefixed = (text: string) => `${text}?table_prefix=${PREFIX}`
  before(async () => {
    url = await db.url()
    await migrate(prefixed(url))
    for (const role of ROLES) as.set(role, await userWith(db, url, role))
  })

  /** A claim that the administrator has made, with what the next commands need to find. */
  async function prepare(task: string): Promise<string> {
    const store = await openStore(prefixed(url))
    await oldWindows(store, task, 0, 3)
    const at = store.instant(OLD)
    await store.db.insertInto('task_effects').values({ effect_key: `${windowKey(task, 0)}#mail`, effect_name: 'mail', task_key: windowKey(task, 0), task_name: task, status: 'done', call_id: 'c', calls: 1, instance_id: 'then', attempt: 1, fence: 1n, started_at: at, done_at: at }).execute()
    await store.db.insertInto('task_attempts').values({ task_key: `${task}:gone`, task_name: task, outcome: 'conflict', reason: 'held', ended_at: at }).execute()
    await store.db.insertInto('tasks').values({ task_name: `${task}-paused`, paused_at: at }).execute()
    await oldWindows(store, `${task}-dead`, 0, 0, { status: 'processing', finished_at: null })
    await store.close()
    const ledger = await openLedger(prefixed(url), { heartbeats: 'loop' })
    const claim = await ledger.claim({ task: `${task}-c`, key: 'a' })
    await ledger.close()
    assert.equal(claim.status, 'claimed')
    return jsonLine(claimJson(claim.handOver()))
  }

  async function attempt(t: TestContext, command: string, role: Role, task: string): Promise<Ran> {
    const claim = await prepare(task)
    const words = await TRIES[command]!(task)
    const held = command === 'hold' ? spawn('sleep', ['60']) : undefined
    const running = start(t, held ? [...words.slice(0, -1), String(held.pid)] : words, { env: { RUNLEDGER_DB: prefixed(as.get(role)!), RUNLEDGER_CLAIM: claim } })
    // A worker goes on until it is told to stop.
    if (command === 'work') await Promise.race([running.line(/status=connected/).then(() => running.process.kill('SIGTERM'), () => {}), running.end])
    if (held) running.process.stdout!.once('data', () => held.kill())
    return running.end.finally(() => held?.kill())
  }

  // That a role can do what those below it can is plain from src/store/roles.ts: each command is tried with its own role, and with the one below.
  for (const role of ['reader', 'runner', 'operator'] as const) {
    it(`case 72: the ${role} runs every command of the role`, async (t) => {
      for (const command of commandsOf(role)) {
        const { code, stderr } = await attempt(t, command, role, `${role}-${command}`)
        assert.deepEqual([command, code], [command, CODES[command] ?? 0], stderr)
        assert.doesNotMatch(stderr, /lacks|gap_unknown/, command)
      }
    })
  }

  for (const [below, role] of [['reader', 'runner'], ['runner', 'operator']] as const) {
    it(`case 72: the ${below} is told which right on which table is missing for the commands of the ${role}, in one line`, async (t) => {
      for (const command of commandsOf(role)) {
        const { code, stderr } = await attempt(t, command, below, `not-${below}-${command}`)
        assert.deepEqual([command, code], [command, 69], stderr)
        assert.match(stderr, /^runledger: .*this user lacks the right (INSERT|UPDATE|DELETE)( or (INSERT|UPDATE|DELETE))* on (task_runs|task_attempts|task_fences|tasks|task_actions|task_effects|fenced_resources); 'runledger grants' prints what each role needs/m)
      }
    })
  }

  it('case 72: the migrator migrates an empty database, and nobody else does; each may look', async () => {
    const empty = await db.url()
    for (const role of ROLES) {
      const theirs = prefixed(await userWith(db, empty, role))
      if (role === 'migrator') continue
      const { code, stderr } = await run(['migrate', '--db', theirs])
      assert.deepEqual([role, code], [role, 69], stderr)
      assert.match(stderr, /lacks the right CREATE on (schema public|runledger_migrations|runledger_lock);/)
    }
    const migrator = prefixed(await userWith(db, empty, 'migrator'))
    assert.deepEqual(await run(['migrate', '--db', migrator]).then(({ code, stderr }) => [code, stderr]), [0, ''])
    assert.equal((await run(['migrate', 'status', '--db', prefixed(as.get('reader')!)])).code, 0)
  })
}, { atOnce: true })

function commandsOf(role: Role): string[] {
  return Object.keys(ROLE_OF_COMMAND).filter((command) => ROLE_OF_COMMAND[command] === role)
}

/** A new user with what `runledger grants` prints, and the URL under which it comes in. */
async function userWith(db: TestServer, url: string, role: Role): Promise<string> {
  const user = `l_${role}_${randomBytes(3).toString('hex')}`
  await db.admin(db.name === 'postgres' ? `create role ${user} login password 'secret'` : `create user ${user}@'%' identified by 'secret'`, url)
  const { code, stdout, stderr } = await run(['grants', '--role', role, '--user', user, '--db', `${url}?table_prefix=${PREFIX}`])
  assert.equal(code, 0, stderr)
  const isEmpty = (await db.admin(`select 1 from information_schema.tables where table_name = '${PREFIX}task_runs' and table_schema in ('public', '${new URL(url).pathname.slice(1)}')`, url)).length === 0
  // Before the first migration there is nothing to grant: whoever looks is refused.
  if (!isEmpty || role === 'migrator') await db.admin(stdout, url)
  const theirs = new URL(url)
  theirs.username = user
  theirs.password = 'secret'
  if (isEmpty && role !== 'migrator' && db.name !== 'postgres') await db.admin(`grant select on ${theirs.pathname.slice(1)}.* to ${user}@'%'`, url)
  return theirs.href
}

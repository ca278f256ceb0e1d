/** Claims for scripts in any language: JSON on stdout, and exit codes that say what to do. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { embeddedLedger, isRunning, kill, ledgerOn, processesWith, until, type Ran, type TestLedger } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

eachDatabase('claims of scripts', (db) => {
  const ledger = ledgerOn(db)

  it('a script claims, renews and completes, and each answers with a line of JSON', async () => {
    const { claim, env } = await claimed(ledger, ['--task', 'report', '--every', '1d', '--at', '2026-09-20T10:00:00Z'])
    assert.deepEqual([claim['task_key'], claim['attempt'], claim['fence'], claim['window_start'], claim['idempotency_key']], ['report:2026-09-20-00:00', 1, 1, '2026-09-20T00:00:00.000Z', 'report:2026-09-20-00:00'])
    assert.deepEqual(json(await ledger.run(['heartbeat'], { env })), { status: 'renewed', lease_seconds: 60, task_key: 'report:2026-09-20-00:00', attempt: 1, fence: 1 })
    assert.deepEqual(json(await ledger.run(['complete'], { env })), { status: 'completed', task_key: 'report:2026-09-20-00:00', attempt: 1, fence: 1 })
    assert.deepEqual(await ledger.sql(`select status from task_runs where task_key = 'report:2026-09-20-00:00'`), [{ status: 'completed' }])
  })

  it('69: a fence beyond 2^53 is exact in the JSON, in the database and in what the script gives back', async () => {
    await ledger.sql(`insert into task_fences (scope, counter) values ('large', 9007199254740992)`)
    const { line, env } = await claimed(ledger, ['--task', 'large', '--key', 'a'])
    assert.match(line, /"fence":9007199254740993,/)
    assert.match((await ledger.run(['heartbeat'], { env })).stdout, /"fence":9007199254740993}/)
    assert.equal((await ledger.run(['complete'], { env })).code, 0)
    assert.equal((await ledger.sql(`select count(*) as n from task_runs where task_name = 'large' and status = 'completed' and fence = 9007199254740993`))[0]!['n'], 1)
  })

  it('85: a claim that outlived its lease can close nothing of its successor, and keeps nobody else out', async () => {
    const first = await claimed(ledger, ['--task', 'foreign', '--key', 'a'])
    await ledger.sql(`update task_runs set heartbeat_at = '2026-01-01 00:00:00.000' where task_name = 'foreign'`)
    const second = await claimed(ledger, ['--task', 'foreign', '--key', 'a'])
    for (const verb of ['complete', 'release', 'fail', 'heartbeat']) assert.equal((await ledger.run([verb], { env: first.env })).code, 75, verb)
    const third = await ledger.run(['claim', '--task', 'foreign', '--key', 'a'])
    assert.deepEqual([third.code, json(third)['reason']], [73, 'held'])
    assert.equal(json(await ledger.run(['release'], { env: second.env }))['status'], 'released')
  })
}, { atOnce: true })

describe('claims of scripts', () => {
  const ledger = embeddedLedger()

  it('fail says when the next attempt may begin, and that there is none', async () => {
    const { env } = await claimed(ledger, ['--task', 'failing', '--key', 'a', '--max-attempts', '2', '--backoff', '0ms'])
    assert.equal(json(await ledger.run(['fail', '--error', 'no file', '--exit-code', '3'], { env }))['retry_in_seconds'], 0)
    const again = await claimed(ledger, ['--task', 'failing', '--key', 'a', '--max-attempts', '2'])
    assert.equal(json(await ledger.run(['fail', '--final'], { env: again.env }))['retry_in_seconds'], null)
    assert.deepEqual(await ledger.sql(`select outcome, reason, exit_code from task_attempts where task_name = 'failing' order by id`), [
      { outcome: 'failed', reason: 'exit', exit_code: 3 },
      { outcome: 'failed', reason: 'error', exit_code: null },
    ])
  })

  it('the claim may be given as a flag; without one, or with anything else, it is a usage error', async () => {
    const { line } = await claimed(ledger, ['--task', 'flagged', '--key', 'a'])
    for (const wrong of ['', 'x', '{}', '[]', line.replace('flagged', 'flag\\nged')]) assert.equal((await ledger.run(['complete', '--claim', wrong])).code, 64, wrong)
    assert.equal((await ledger.run(['complete'])).code, 64)
    assert.equal((await ledger.run(['complete', '--claim', line])).code, 0)
  })

  it('without --hold nobody is taken for dead, whatever has ended: the lease alone decides', async () => {
    const claim = await ledger.run(['claim', '--task', 'alive', '--key', 'a'], { under: ['sh', '-c', '"$@"; exit $?', 'script'] })
    assert.equal(claim.code, 0, claim.stderr)
    const rival = await ledger.run(['claim', '--task', 'alive', '--key', 'a'])
    assert.deepEqual([rival.code, json(rival)['reason']], [73, 'held'])
  })

  it('with --hold the lease is kept while the process lives, and its death frees the run at once', async (t) => {
    const script = startScript(t)
    const { claim } = await claimed(ledger, ['--task', 'held', '--key', 'a', '--hold', String(script.pid), '--lease', '5s', '--heartbeat', '100ms', '--max-attempts', '3'])
    const claimedAt = new Date().toISOString()
    const beats = () => ledger.sql(`select task_key from task_runs where task_name = 'held' and heartbeat_at > '${claimedAt}'`)
    await until(async () => (await beats()).length === 1, 'a heartbeat after the claiming process has ended')
    assert.equal((await ledger.run(['claim', '--task', 'held', '--key', 'a'])).code, 73)
    kill(script.pid!, 'SIGKILL')
    await once(script, 'exit')
    const next = await claimed(ledger, ['--task', 'held', '--key', 'a'])
    assert.equal(next.claim['attempt'], 2)
    await until(() => keepersOf(claim).length === 0, 'the end of the keeper')
  })

  it('a keeper ends when the claim is closed, and leaves the script alone', async (t) => {
    const script = startScript(t)
    const { claim, env } = await claimed(ledger, ['--task', 'closed', '--key', 'a', '--hold', String(script.pid), '--lease', '5s', '--heartbeat', '100ms'])
    assert.equal(keepersOf(claim).length, 1)
    assert.equal((await ledger.run(['complete'], { env })).code, 0)
    await until(() => keepersOf(claim).length === 0, 'the end of the keeper')
    assert.ok(isRunning(script.pid!))
  })

  it('when the lease of a held claim is lost all the same, the process is told by SIGTERM, or left alone if asked', async (t) => {
    for (const [onLost, end] of [['term', 'SIGTERM'], ['none', null]] as const) {
      const script = startScript(t)
      const ended = once(script, 'exit')
      const { claim } = await claimed(ledger, ['--task', 'lost', '--key', onLost, '--hold', String(script.pid), '--on-lost', onLost, '--lease', '5s', '--heartbeat', '100ms', '--overlap', 'allow'])
      await ledger.sql(`update task_runs set instance_id = '${String(claim['instance_id']).replace(/.$/, 'x')}' where task_key = 'lost:${onLost}'`)
      await until(() => keepersOf(claim).length === 0, 'the end of the keeper')
      if (end) assert.deepEqual(await ended, [null, end])
      else assert.ok(isRunning(script.pid!))
    }
  })

  it('nobody can be held who is not there, and then nothing is claimed', async () => {
    assert.equal((await ledger.run(['claim', '--task', 'nobody', '--key', 'a', '--hold', '2147483647'])).code, 64)
    assert.deepEqual(await ledger.sql(`select * from task_runs where task_name = 'nobody'`), [])
  })

  it("a job of exec does not take the claim of the script that started it for its own", async () => {
    const { env } = await claimed(ledger, ['--task', 'outer', '--key', 'a'])
    const { stdout } = await ledger.run(['exec', '--task', 'inner', '--', 'sh', '-c', 'echo "${RUNLEDGER_CLAIM-none} $RUNLEDGER_TASK"'], { env })
    assert.equal(stdout, 'none inner\n')
  })
})

/** Its claim, which must succeed, and the environment for what goes on with it. */
async function claimed(ledger: TestLedger, args: readonly string[]) {
  const ran = await ledger.run(['claim', ...args])
  assert.equal(ran.code, 0, ran.stderr)
  const line = ran.stdout.trimEnd()
  return { line, claim: json(ran), env: { RUNLEDGER_CLAIM: line } }
}

// eslint-disable-next-line typescript/no-explicit-any -- whatever the product printed
function json(ran: Ran): Record<string, any> {
  return JSON.parse(ran.stdout)
}

/** A script at its work. */
function startScript(t: TestContext): ChildProcess {
  const script = spawn('sleep', ['60'], { stdio: 'ignore' })
  t.after(() => kill(script.pid!, 'SIGKILL'))
  return script
}

function keepersOf(claim: Record<string, unknown>): number[] {
  return processesWith(String(claim['instance_id']))
}

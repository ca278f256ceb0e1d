/** A wrapper that can no longer prove its lease, frozen or cut off, has no job any more when somebody else may begin. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { embeddedLedger, fieldsOf, iso, kill, ledgerOn, newFolder, sh, until, type Running, type TestLedger } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'
import { eachServer } from '../support/each-server.ts'
import { faultProxy } from '../support/fault-proxy.ts'

const LEASE = ['--lease', '3s']

/** Deaf to SIGTERM, which it notes; says every 20 ms that it is alive. */
function deaf(folder: string): string[] {
  return sh(`trap 'echo term >>${join(folder, 'terms')}' TERM; while :; do date +%s%3N >>${join(folder, 'beats')}; sleep 0.02; done`)
}

const quiet = (stderr: string) => assert.doesNotMatch(stderr, /Warning|heartbeat_missed/)
const linesOf = (folder: string, name: string) => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n')
const lastBeat = (folder: string) => Number(linesOf(folder, 'beats').at(-1))

async function started(running: Running): Promise<{ instance: string; pid: number }> {
  const { instance, pid } = fieldsOf(await running.line(/status=started/))
  return { instance: instance!, pid: Number(pid) }
}

/** By the database's clock, which is this machine's. */
async function leaseEnd(ledger: TestLedger, task: string): Promise<number> {
  const [{ heartbeat_at, lease_seconds } = {}] = await ledger.sql(`select heartbeat_at, lease_seconds from task_runs where task_name = '${task}'`)
  return Date.parse(iso(heartbeat_at)) + Number(lease_seconds) * 1000
}

eachDatabase('lease', (db) => {
  const ledger = ledgerOn(db)
  const folder = newFolder()

  it('case 80: a frozen wrapper has lost its job before the next owner begins; woken up it says so and writes nothing', async (t) => {
    const frozen = ledger.start(t, ['exec', '--task', 'frozen', '--key', 'k', ...LEASE, ...deaf(folder)])
    const { instance, pid } = await started(frozen)
    kill(pid, 'SIGSTOP')
    const next = ledger.start(t, ['exec', '--task', 'frozen', '--key', 'k', '--overlap', 'wait', '--wait-timeout', '30s', ...sh(`date +%s%3N; while [ ! -e ${join(folder, 'go')} ]; do sleep 0.05; done`)])
    const owner = await started(next)
    const died = lastBeat(folder)
    kill(pid, 'SIGCONT')
    const { code, stderr } = await frozen.end
    assert.equal(code, 75)
    assert.match(stderr, /status=lease_lost reason="LEASE_LOST: frozen:k attempt 1: /)
    assert.equal(lastBeat(folder), died, 'it was dead before it was woken up')
    assert.deepEqual(linesOf(folder, 'terms'), ['term'], 'asked before it was killed')
    assert.deepEqual(await ledger.sql(`select status, attempt, instance_id from task_runs where task_name = 'frozen'`), [{ status: 'processing', attempt: 2, instance_id: owner.instance }])
    await ledger.run(['exec', '--task', 'unrelated', ...sh(`touch ${join(folder, 'go')}`)])
    const done = await next.end
    assert.ok(died < Number(done.stdout), `the last sign of life came ${died - Number(done.stdout)} ms after the next owner began`)
    assert.deepEqual(await ledger.sql(`select attempt, outcome, instance_id from task_attempts where task_name = 'frozen'`), [{ attempt: 1, outcome: 'lost', instance_id: instance }])
    assert.deepEqual([done.code, await ledger.sql(`select status, attempt, instance_id from task_runs where task_name = 'frozen'`)], [0, [{ status: 'completed', attempt: 2, instance_id: owner.instance }]])
  })
}, { atOnce: true })

eachServer('lease behind a network', (db) => {
  const ledger = ledgerOn(db)

  /** A proxy of one test's own, and the command line behind it. */
  async function behind(t: TestContext) {
    const proxy = await faultProxy(ledger.url)
    t.after(() => proxy.close())
    return { proxy, start: (args: readonly string[]) => ledger.start(t, args, { env: { RUNLEDGER_DB: proxy.url } }) }
  }

  describe('outages', { concurrency: true }, () => {
    for (const mode of ['refuse', 'blackhole'] as const) {
      it(`case 80: a wrapper cut off from the database (${mode}) ends its job, TERM then KILL, before its lease is over; 75`, async (t) => {
        const folder = newFolder(t)
        const { proxy, start } = await behind(t)
        const cutOff = start(['exec', '--task', mode, ...LEASE, ...deaf(folder)])
        const { instance } = await started(cutOff)
        await until(async () => (await ledger.sql(`select 1 from task_runs where instance_id = '${instance}' and heartbeat_at > started_at`)).length > 0, 'a heartbeat')
        proxy.mode = mode
        if (mode === 'refuse') proxy.reset()
        const since = performance.now()
        const { code, stderr } = await cutOff.end
        assert.ok(performance.now() - since < 10_000, 'it does not wait for the database any more')
        assert.equal(code, 75)
        assert.match(stderr, / attempt=1 fence=1 status=lease_lost reason="LEASE_LOST: /)
        assert.equal(linesOf(folder, 'terms')[0], 'term', 'asked before it was killed')
        const left = (await leaseEnd(ledger, mode)) - lastBeat(folder)
        assert.ok(left > 0, `it lived ${-left} ms longer than its lease`)
        assert.deepEqual(await ledger.sql(`select status, instance_id from task_runs where task_name = '${mode}'`), [{ status: 'processing', instance_id: instance }])
      })
    }

    it('case 16: a --connect-timeout of a month does not fire at once', async (t) => {
      const { start } = await behind(t)
      const { code, stderr } = await start(['exec', '--task', 'month', '--connect-timeout', '30d', '--', 'true']).end
      assert.equal(code, 0)
      quiet(stderr)
    })

    it('an outage shorter than the lease costs nothing but a line for each heartbeat missed', async (t) => {
      const { proxy, start } = await behind(t)
      const running = start(['exec', '--task', 'short', '--lease', '10s', '--heartbeat', '200ms', ...sh('sleep 2')])
      await started(running)
      proxy.mode = 'refuse'
      proxy.reset()
      await running.line(/status=heartbeat_missed/)
      proxy.mode = 'up'
      assert.equal((await running.end).code, 0)
      assert.deepEqual(await ledger.sql(`select status, attempt, fence from task_runs where task_name = 'short'`), [{ status: 'completed', attempt: 1, fence: 1 }])
    })

    it('case 56: sessions that the server ends, five times during a job, do not end it', async (t) => {
      const { proxy, start } = await behind(t)
      const running = start(['exec', '--task', 'resets', '--lease', '10s', '--heartbeat', '100ms', ...sh('sleep 2')])
      await started(running)
      for (let n = 0; n < 5; n++) {
        await sleep(300)
        proxy.reset()
      }
      assert.equal((await running.end).code, 0)
      assert.deepEqual(await ledger.sql(`select status, attempt, fence from task_runs where task_name = 'resets'`), [{ status: 'completed', attempt: 1, fence: 1 }])
    })

    it('the end of a job is recorded as soon as the database is back, even when the lease is over, as long as the run is still its own', async (t) => {
      const { proxy, start } = await behind(t)
      const running = start(['exec', '--task', 'late', '--lease', '2s', ...sh('sleep 0.3; echo done')])
      await started(running)
      proxy.mode = 'refuse'
      proxy.reset()
      await until(async () => (await ledger.sql(`select 1 from stale_task_runs where task_name = 'late'`)).length > 0, 'the end of the lease')
      proxy.mode = 'up'
      assert.equal((await running.end).code, 0)
      assert.deepEqual(await ledger.sql(`select status, attempt, output_tail from task_runs where task_name = 'late'`), [{ status: 'completed', attempt: 1, output_tail: 'done\n' }])
    })
  })
}, { atOnce: true })

describe('long times', { concurrency: true }, () => {
  const ledger = embeddedLedger()

  it('case 16: no timer of a month or of a year fires at once', async (t) => {
    const flags = ['--lease', '300d', '--heartbeat', '30d', '--timeout', '60d', '--kill-after', '30d', '--connect-timeout', '30d']
    const holder = ledger.start(t, ['exec', '--task', 'months', ...flags, ...sh('sleep 1.5; echo done')])
    await started(holder)
    const waiting = ledger.start(t, ['exec', '--task', 'months', ...flags, '--overlap', 'wait', '--wait-timeout', '30d', ...sh('echo next')])
    const [first, second] = [await holder.end, await waiting.end]
    assert.deepEqual([first.code, first.stdout, second.code, second.stdout], [0, 'done\n', 0, 'next\n'])
    quiet(first.stderr + second.stderr)
  })

  it('case 16: a backoff of a month is waited for', async (t) => {
    const running = ledger.start(t, ['exec', '--task', 'month', '--max-attempts', '2', '--backoff', '30d', ...sh('exit 5')])
    await running.line(/status=failed .*retry_in=/)
    await sleep(300) // in which nothing may happen
    assert.equal(running.process.exitCode, null)
    running.process.kill('SIGTERM')
    const { code, stderr } = await running.end
    assert.deepEqual([code, stderr.split('\n').length], [5, 3])
    quiet(stderr)
  })

  it('case 16: the reaper that is to pass once a month passes once', async (t) => {
    const reaper = ledger.start(t, ['reap', '--every', '30d'])
    await reaper.line(/status=reap_done/)
    await sleep(300)
    reaper.process.kill('SIGTERM')
    const { code, stderr } = await reaper.end
    assert.deepEqual([code, stderr.split('\n').length], [0, 2])
    quiet(stderr)
  })
})

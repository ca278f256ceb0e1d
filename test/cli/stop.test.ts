/** `exec` told to stop, by a signal: the job ends within its grace, the row says why, and what had not begun is given back. */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { TestContext } from 'node:test'
import { cannotUnshare, embeddedLedger, fieldsOf, gone, kill, ledgerOn, newFolder, procFile, processesWith, sh, until, type CliOptions } from '../support/cli.ts'
import { eachServer } from '../support/each-server.ts'
import { faultProxy } from '../support/fault-proxy.ts'

const CONTAINER = ['--pid', '--fork', '--mount-proc', '--kill-child']

describe('stop', { concurrency: 3 }, () => {
  const ledger = embeddedLedger()
  const folder = newFolder()
  const run = async (task: string) => (await ledger.sql(`select status, failure_reason, exit_code, attempt from task_runs where task_name = '${task}'`))[0]
  const outcomes = (task: string) => ledger.sql(`select outcome, reason from task_attempts where task_name = '${task}' order by id`)

  /** Running, and so far that it said `ready`. */
  async function ready(t: TestContext, args: readonly string[], script: string, options: CliOptions = {}) {
    const running = ledger.start(t, ['exec', ...args, ...sh(script)], options)
    let output = ''
    running.process.stdout!.on('data', (chunk) => (output += String(chunk)))
    const { instance, pid } = fieldsOf(await running.line(/status=started/))
    await until(() => output.includes('ready'), 'the word ready')
    return { running, instance: instance!, pid: Number(pid) }
  }

  it('case 99: SIGTERM reaches the whole group; none is left, the row has failed by signal, 143', async (t) => {
    const { running, instance, pid } = await ready(t, ['--task', 'group'], 'sleep 300 & echo ready; wait')
    kill(pid, 'SIGTERM')
    const { code, stderr } = await running.end
    assert.deepEqual([code, await run('group'), processesWith(instance)], [143, { status: 'failed', failure_reason: 'signal', exit_code: 143, attempt: 1 }, []])
    assert.match(stderr, /status=failed reason=signal exit_code=143 /)
  })

  it('a stopped attempt that may be repeated is pending, and not repeated by this process', async (t) => {
    const { running, pid } = await ready(t, ['--task', 'again', '--max-attempts', '3', '--backoff', '10ms'], 'echo ready; sleep 300')
    kill(pid, 'SIGTERM')
    assert.equal((await running.end).code, 143)
    assert.deepEqual([await run('again'), await outcomes('again')], [{ status: 'pending', failure_reason: null, exit_code: null, attempt: 1 }, [{ outcome: 'failed', reason: 'signal' }]])
  })

  it('case 88: a job deaf to SIGTERM is killed after --kill-after; until then it has its lease and no reaper takes it', async (t) => {
    const { running, instance, pid } = await ready(t, ['--task', 'deaf', '--lease', '1s', '--kill-after', '2500ms'], 'trap "" TERM; echo ready; while :; do sleep 0.05; done')
    const asked = performance.now()
    kill(pid, 'SIGTERM')
    while (performance.now() - asked < 2000) assert.match((await ledger.run(['reap'])).stderr, / reaped=0 /)
    const { code } = await running.end
    assert.ok(performance.now() - asked >= 2450)
    assert.deepEqual([code, await run('deaf'), await outcomes('deaf'), processesWith(instance)], [137, { status: 'failed', failure_reason: 'signal', exit_code: 137, attempt: 1 }, [{ outcome: 'failed', reason: 'signal' }], []])
  })

  it('once the run is recorded, a reader that does not read holds nobody who is told to stop', async (t) => {
    const stuck = `"$@" | { while [ ! -e ${join(folder, 'go')} ]; do sleep 0.02; done; cat >/dev/null; }`
    const running = ledger.start(t, ['exec', '--task', 'stuck', '--', 'head', '-c', '150000', '/dev/zero'], { under: ['sh', '-c', stuck, 'sh'] })
    const { pid, instance } = fieldsOf(await running.line(/status=started/))
    await until(async () => (await run('stuck'))?.['status'] === 'completed', 'the record')
    await until(() => processesWith(instance!).length === 0, 'the end of job and watchdog')
    kill(Number(pid), 'SIGTERM')
    await until(() => procFile(Number(pid), 'stat') === '', 'the end of the wrapper')
    writeFileSync(join(folder, 'go'), '')
    await running.end
  })

  it('case 100: as process 1, SIGTERM ends job and container, and the row is written before: 143', { skip: cannotUnshare(...CONTAINER) }, async (t) => {
    const { running, instance } = await ready(t, ['--task', 'container'], '(sleep 300 &); echo ready; sleep 300', { under: ['unshare', ...CONTAINER] })
    const one = processesWith(running.mark).find((pid) => /^NSpid:\t\d+\t1$/m.test(procFile(pid, 'status')))!
    kill(one, 'SIGTERM')
    assert.deepEqual([(await running.end).code, await run('container')], [143, { status: 'failed', failure_reason: 'signal', exit_code: 143, attempt: 1 }])
    await gone(instance)
  })

  it('case 100: as process 1, a double-forking job leaves no zombie, and its own exit code counts', { skip: cannotUnshare(...CONTAINER) }, async () => {
    const script = 'for i in 1 2 3; do (sh -c "sleep 0.1; exit 1" &); done; sleep 0.5; cat /proc/[0-9]*/stat | grep -c ") Z "; exit 9'
    const ran = await ledger.run(['exec', '--task', 'zombies', ...sh(script)], { under: ['unshare', ...CONTAINER] })
    assert.deepEqual([ran.code, ran.stdout, await run('zombies')], [9, '0\n', { status: 'failed', failure_reason: 'exit', exit_code: 9, attempt: 1 }])
  })
})

eachServer('stop', (db) => {
  const ledger = ledgerOn(db)

  /** A launch behind a proxy that is told to stop when the `nth` statement that matches is under way. */
  async function stoppedAt(t: TestContext, statement: RegExp, nth: number, args: readonly string[]) {
    const proxy = await faultProxy(ledger.url)
    t.after(() => proxy.close())
    proxy.latencyMs = 100 // between our hearing of the statement and its answer: the signal is taken meanwhile
    const running = ledger.start(t, args, { env: { RUNLEDGER_DB: proxy.url } })
    let seen = 0
    proxy.onStatement = (text) => {
      if (statement.test(text) && ++seen === nth) kill(running.pid, 'SIGTERM')
      return undefined
    }
    return running.end
  }

  it('a run whose claim came through after the signal is given back unbegun', async (t) => {
    const marker = join(newFolder(t), 'marker')
    const { code, stderr } = await stoppedAt(t, /insert into [^;]*task_runs/, 1, ['exec', '--task', 'unbegun', '--key', 'k', ...sh(`touch ${marker}`)])
    assert.deepEqual([code, existsSync(marker)], [143, false])
    assert.match(stderr, /^task=unbegun key=unbegun:k [^\n]* attempt=1 fence=1 status=released reason="told to stop before the job began" time=\S+\n$/)
    assert.deepEqual(await ledger.sql(`select status, attempt from task_runs where task_name = 'unbegun'`), [{ status: 'pending', attempt: 0 }])
    const next = await ledger.run(['exec', '--task', 'unbegun', '--key', 'k', ...sh('echo $RUNLEDGER_ATTEMPT')])
    assert.deepEqual([next.code, next.stdout], [0, '1\n'])
  })

  it('a launch that waits for its turn gives up at once, as a conflict, with 143', async (t) => {
    const holder = ledger.start(t, ['exec', '--task', 'turn', ...sh('sleep 300')])
    await holder.line(/status=started/)
    const { code } = await stoppedAt(t, /active_key["`] = /, 3, ['exec', '--task', 'turn', '--overlap', 'wait', '--wait-timeout', '1h', '--conflict-exit-code', '3', '--', 'true'])
    holder.process.kill('SIGTERM')
    await holder.end
    assert.equal(code, 143)
    assert.deepEqual(await ledger.sql(`select outcome, reason from task_attempts where task_name = 'turn' order by id`), [{ outcome: 'conflict', reason: 'wait_timeout' }, { outcome: 'failed', reason: 'signal' }])
  })
}, { atOnce: true })

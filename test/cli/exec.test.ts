/** `runledger exec` end to end: what the job is given, what comes back, and what the row says. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { BINARY, cannotUnshare, embeddedLedger, fieldsOf, iso, kill, ledgerOn, newFolder, sh, until } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

const daily = ['--cron', '0 18 * * *', '--tz', 'Asia/Shanghai', '--at', '2026-09-20T10:00:01Z']
const printenv = ['--', 'sh', '-c', 'env | grep ^RUNLEDGER_ | sort']

eachDatabase('exec', (db) => {
  const ledger = ledgerOn(db)

  it('leaves a row that says which window, who, and how it ended', async () => {
    const ran = await ledger.run(['exec', '--task', 'daily_news', ...daily, ...sh('echo done; echo and well >&2')], { env: { RUNLEDGER_LAUNCHER: 'cron' } })
    const started = fieldsOf(ran.stderr)
    assert.equal(ran.code, 0)
    const [{ window_start, window_end, output_tail, ...row } = {}] = await ledger.sql(`
      select task_key, window_start, window_end, window_zone, status, attempt, fence, instance_id, host, pid, launcher, exit_code, output_tail from task_runs`)
    assert.deepEqual(row, {
      task_key: 'daily_news:2026-09-20-18:00', window_zone: 'Asia/Shanghai', status: 'completed', attempt: 1, fence: 1,
      instance_id: started['instance'], host: hostname(), pid: Number(started['pid']), launcher: 'cron', exit_code: 0,
    })
    assert.deepEqual([iso(window_start), iso(window_end)], ['2026-09-20T10:00:00.000Z', '2026-09-21T10:00:00.000Z'])
    assert.match(String(output_tail), /^(done\nand well|and well\ndone)\n$/)
  })

  it('case 87: a host whose clock is 4 s late finds the window done, however short the job was', async () => {
    const launch = (at: string) => ledger.run(['exec', '--task', 'short', '--cron', '* * * * *', '--at', at, '--', 'true'])
    await launch('2026-09-20T10:00:00Z')
    const late = await launch('2026-09-20T10:00:04Z')
    assert.equal(late.code, 0)
    assert.match(late.stderr, /key=short:2026-09-20-10:00 .*status=conflict reason=done /)
    assert.deepEqual(await ledger.sql(`select reason from task_attempts where task_name = 'short'`), [{ reason: 'done' }])
  })

  it('a manual run has a key of its own each time, and no window', async () => {
    for (let n = 0; n < 2; n++) assert.equal((await ledger.run(['exec', '--task', 'by-hand', '--', 'true'])).code, 0)
    const rows = await ledger.sql(`select task_key, window_start, window_zone, max_attempts from task_runs where task_name = 'by-hand'`)
    assert.equal(new Set(rows.map(({ task_key }) => task_key)).size, 2)
    for (const { task_key, ...rest } of rows) {
      assert.match(String(task_key), /^by-hand:manual-[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/)
      assert.deepEqual(rest, { window_start: null, window_zone: null, max_attempts: 1 })
    }
  })
})

describe('exec', () => {
  const ledger = embeddedLedger()

  it('the job sees its task, key, window, attempt, instance, fence and idempotency key', async () => {
    const { stdout, stderr } = await ledger.run(['exec', '--task', 'seen', ...daily, ...printenv])
    assert.deepEqual(stdout.trimEnd().split('\n').filter((line) => !/^RUNLEDGER_(DB|TEST_RUN)=/.test(line)), [
      'RUNLEDGER_ATTEMPT=1',
      'RUNLEDGER_FENCE=1',
      'RUNLEDGER_IDEMPOTENCY_KEY=seen:2026-09-20-18:00',
      `RUNLEDGER_INSTANCE_ID=${fieldsOf(stderr)['instance']}`,
      'RUNLEDGER_TASK=seen',
      'RUNLEDGER_TASK_KEY=seen:2026-09-20-18:00',
      'RUNLEDGER_WINDOW_END=2026-09-21T10:00:00.000Z',
      'RUNLEDGER_WINDOW_START=2026-09-20T10:00:00.000Z',
    ])
  })

  it("a job within a job does not take the outer one's window, key or instance for its own", async () => {
    const { stdout, stderr } = await ledger.run(['exec', '--task', 'outer', ...daily, '--', process.execPath, BINARY, 'exec', '--task', 'inner', '--key', 'k', ...printenv])
    const inner = stderr.split('\n').find((line) => line.startsWith('task=inner'))!
    assert.doesNotMatch(stdout, /WINDOW|outer/)
    assert.match(stdout, /^RUNLEDGER_TASK_KEY=inner:k$/m)
    assert.match(stdout, new RegExp(`^RUNLEDGER_INSTANCE_ID=${fieldsOf(inner)['instance']}$`, 'm'))
  })

  it('stdin and stdout pass byte for byte', async () => {
    const bytes = randomBytes(3_000_000)
    const ran = await ledger.run(['exec', '--task', 'bytes', '--', 'cat'], { stdin: bytes })
    assert.equal(ran.code, 0)
    assert.ok(ran.stdoutBytes.equals(bytes))
  })

  it('stderr passes likewise, with the log lines of runledger before and after, however slow its reader', async (t) => {
    const go = join(newFolder(t), 'go')
    const text = randomBytes(70_000).toString('hex') // more than its pipe takes, and no more than the job can write to its end
    const slow = ['sh', '-c', `"$@" 2>&1 >/dev/null | { while [ ! -e ${go} ]; do sleep 0.05; done; cat; }`, 'sh']
    const running = ledger.start(t, ['exec', '--task', 'noise', ...sh('cat >&2; echo >&2')], { stdin: text, under: slow })
    await until(async () => (await ledger.sql(`select 1 from task_runs where task_name = 'noise' and status = 'completed'`)).length > 0, 'the end of the run')
    writeFileSync(go, '')
    const lines = (await running.end).stdout.split('\n')
    assert.deepEqual([lines.length, fieldsOf(lines[0]!)['status'], fieldsOf(lines[2]!)['status']], [4, 'started', 'completed'])
    assert.ok(lines[1] === text)
  })

  it('a grandchild that keeps the output open holds neither the run nor the reader', async () => {
    const { code, stdout } = await ledger.run(['exec', '--task', 'daemon', ...sh('sleep 300 & echo $!')])
    kill(Number(stdout), 'SIGKILL')
    assert.equal(code, 0)
    assert.deepEqual(await ledger.sql(`select status, output_tail from task_runs where task_name = 'daemon'`), [{ status: 'completed', output_tail: stdout }])
  })

  it('case 104: input that the job never reads does no harm, run after run', async () => {
    const rounds = Number(process.env['RUNLEDGER_EXEC_ROUNDS'] ?? 100)
    const codes = new Map<number | null, number>()
    const worker = async (share: number) => {
      for (let n = 0; n < share; n++) {
        const { code } = await ledger.run(['exec', '--task', 'unread', '--overlap', 'allow', '--', 'true'], { stdin: 'data\n' })
        codes.set(code, (codes.get(code) ?? 0) + 1)
      }
    }
    await Promise.all([worker(Math.floor(rounds / 2)), worker(Math.ceil(rounds / 2))])
    assert.deepEqual([...codes], [[0, rounds]])
    assert.deepEqual(await ledger.sql(`select status, count(*) as runs from task_runs where task_name = 'unread' group by status`), [{ status: 'completed', runs: rounds }])
  })

  it('case 50: the longest host name that Linux takes stands in the row as it is', { skip: cannotUnshare('--uts') }, async () => {
    const name = `${'pod-'.repeat(15)}last`
    const ran = await ledger.run(['exec', '--task', 'long-host', '--', 'true'], { under: ['unshare', '--uts', 'sh', '-c', `echo ${name} >/proc/sys/kernel/hostname; exec "$@"`, 'sh'] })
    assert.equal(ran.code, 0)
    assert.deepEqual(await ledger.sql(`select host, length(instance_id) as id from task_runs where task_name = 'long-host'`), [{ host: name, id: 36 }])
  })
})

/** Bad input gets one clear line on stderr and the right exit code; nothing is written, and nothing is started. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { embeddedLedger, ledgerOn, newFolder, run, sh } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'
import { killSessions, eachServer } from '../support/each-server.ts'
import { faultProxy } from '../support/fault-proxy.ts'
import { onlyOn } from '../support/only-on.ts'

describe('bad input', () => {
  const folder = newFolder()
  const marker = join(folder, 'marker')
  const job = ['--', 'touch', marker]
  const exec = (...flags: string[]) => ['exec', '--task', 't', ...flags, ...job]

  const backfill = (...flags: string[]) => ['backfill', '--task', 't', ...flags, ...job]
  const span = ['--from', '2026-09-20T00:00Z', '--to', '2026-09-21T00:00Z']

  /** A command line, and what the line on stderr says. */
  const refused: [string[], RegExp][] = [
    [[], /command: is missing/],
    [['frobnicate'], /command: there is no 'frobnicate'/],
    [['toString'], /command: there is no 'toString'/],
    [['--db', 'x', 'runs'], /command: there is no '--db'/],
    [exec('--frobnicate'), /exec: unknown option '--frobnicate'/],
    [exec('--only-own=yes'), /only-own/],
    [exec('--at'), /at/],
    [['exec', ...job], /task: is missing/],
    [['exec', '--task', '', ...job], /task: is missing/],
    [['exec', '--task', 'ünsafe', ...job], /task: "ünsafe" may only have/],
    [['exec', '--task', "'; delete from task_runs;--", ...job], /task: .* may only have/],
    [['exec', '--task', 'x'.repeat(101), ...job], /task: is 101 characters long/],
    [['exec', '--task', 't'], /exec: needs a command after --/],
    [['exec', '--task', 't', '--'], /exec: needs a command after --/],
    [['exec', '--task', 't', 'touch', marker], /exec: does not know what to do with "touch"/],
    [exec('--cron', '', '--tz', 'UTC'), /cron: is empty/],
    [exec('--cron', '0 0 30 2 *'), /cron: /],
    [exec('--cron', '60 * * * *'), /cron: /],
    [exec('--cron', '*/0 * * * *'), /cron: /],
    [exec('--cron', '5-1 * * * *'), /cron: /],
    [exec('--cron', '0 0 * * 8'), /cron: /],
    [exec('--cron', 'H H * * *'), /cron: /],
    [exec('--every', '7 bananas'), /every: /],
    [exec('--cron', '* * * * *', '--tz', 'Mars/Phobos'), /tz: /],
    [exec('--cron', '* * * * *', '--every', '1h'), /every: cannot stand beside --cron/],
    [exec('--every', '1h', '--key', 'k'), /key: cannot stand beside --every/],
    [exec('--key', 'k', '--tz', 'UTC'), /tz: needs --cron or --every/],
    [exec('--cron', '* * * * *', '--at', '2026-09-20T10:00'), /at: .* is a local time, which names no instant/],
    [exec('--cron', '* * * * *', '--at', '2026-02-30T10:00:00Z'), /at: no such date and time/],
    [exec('--key', ''), /key: must not be empty/],
    [exec('--key', 'x'.repeat(201)), /key: is 201 characters long/],
    [exec('--key', 'x'.repeat(199)), /key: is 201 characters long/], // with `t:` before it
    [exec('--key', 'a\nb'), /key: must not have control characters/],
    [exec('--key', 'a\u0085b'), /key: must not have control characters/],
    [exec('--key', ' a'), /key: must not begin or end with a space/],
    [exec('--key', 'a\u00a0'), /key: must not begin or end with a space/],
    [exec('--overlap', 'perhaps'), /overlap: must be one of skip, wait, queue, allow/],
    [exec('--overlap', 'wait'), /wait-timeout: is needed/],
    [exec('--wait-timeout', '5s'), /wait-timeout: only goes with/],
    [exec('--lease', '5'), /lease: must be a number with a unit/],
    [exec('--lease', '100ms'), /lease: must be at least 500ms/],
    [exec('--lease', '0s'), /lease: must be more than zero/],
    [exec('--lease', 'NaNs'), /lease: /],
    [exec('--lease', '9999999d'), /lease: must be at most ten years/],
    [exec('--lease=-5s'), /lease: /],
    [exec('--lease', '10s', '--heartbeat', '4s'), /lease: 10s is shorter than 3 heartbeats of 4s/],
    [exec('--timeout', '0s'), /timeout: must be more than zero/],
    [exec('--kill-after', 'soon'), /kill-after: /],
    [exec('--max-attempts', '0'), /max-attempts: must be a whole number from 1 to 1000/],
    [exec('--max-attempts', '2.5'), /max-attempts: /],
    [exec('--backoff', '1y'), /backoff: /],
    [exec('--conflict-exit-code', '256'), /conflict-exit-code: must be a whole number from 0 to 255/],
    [exec('--early', 'x'), /early: /],
    [exec('--log-format', 'xml'), /log-format: must be logfmt or json/],
    [exec('--connect-timeout', '10'), /connect-timeout: /],
    [['reap', 'everything'], /reap: takes no word, got "everything"/],
    [['reap', '--every', '0s'], /every: must be more than zero/],
    [['runs', 'failed'], /runs: takes no word, got "failed"/],
    [['runs', '--status', 'running'], /status: must be one of pending, processing, completed, failed/],
    [['runs', '--since', 'yesterday'], /since: /],
    [['runs', '--limit', '0'], /limit: must be a whole number from 1 to 100000/],
    [['show'], /show: takes one key/],
    [['show', 'a', 'b'], /show: takes one key/],
    [['tasks', 'list'], /tasks: takes set or nothing, got "list"/],
    [['tasks', '--grace', '5m'], /grace: goes with 'runledger tasks set'/],
    [['tasks', 'set'], /task: is missing/],
    [['tasks', 'set', '--task', 't'], /tasks: nothing to set/],
    [['tasks', 'set', '--task', 'a b', '--grace', '5m'], /task: "a b" may only have/],
    [['tasks', 'set', '--task', 't', '--cron', '0 0 * * 8'], /cron: /],
    [['tasks', 'set', '--task', 't', '--cron', `${'0,'.repeat(100)}1 * * * *`], /cron: is longer than 200 characters/],
    [['tasks', 'set', '--task', 't', '--cron', '* * * * *', '--no-schedule'], /no-schedule: cannot stand beside --cron/],
    [['tasks', 'set', '--task', 't', '--tz', 'UTC'], /tz: needs --cron or --every/],
    [['tasks', 'set', '--task', 't', '--as-launched', '--overlap', 'skip'], /overlap: cannot stand beside --as-launched/],
    [['tasks', 'set', '--task', 't', '--catch-up', 'some'], /catch-up: must be one of none, latest, all/],
    [['tasks', 'set', '--task', 't', '--catch-up-max-count', '1001'], /catch-up-max-count: must be a whole number from 1 to 1000/],
    [['tasks', 'set', '--task', 't', '--catch-up-max-age', '0s'], /catch-up-max-age: must be more than zero/],
    [['tasks', 'set', '--task', 't', '--since', 'yesterday'], /since: must be an instant/],
    [['missing', 'news'], /missing: takes no word, got "news"/],
    [['missing', '--since', 'yesterday'], /since: must be a number with a unit/],
    [['missing', '--too-long', '0s'], /too-long: must be more than zero/],
    [['check', 'news'], /check: takes no word, got "news"/],
    [['check', '--failures', '0'], /failures: must be a whole number from 1 to 1000/],
    [['check', '--stale-after', '5'], /stale-after: must be a number with a unit/],
    [['metrics', 'news'], /metrics: takes no word, got "news"/],
    [['metrics', '--out', ''], /out: must name a file/],
    [backfill(), /from: is missing/],
    [backfill('--from', '2026-09-20T00:00Z'), /to: is missing/],
    [backfill('--from', '2026-09-20T00:00Z', '--to', '2026-09-20T00:00Z'), /to: must be later than --from/],
    [backfill('--from', '2026-09-20', '--to', '2026-09-21'), /from: must be an instant/],
    [['backfill', '--task', 't', ...span, '--every', '1h'], /backfill: needs a command after --, or --dry-run/],
    [backfill(...span, '--dry-run'), /dry-run: runs no command/],
    [backfill(...span, '--only', 'some'), /only: must be one of missing, failed, all/],
    [backfill(...span, '--parallel', '65'), /parallel: must be a whole number from 1 to 64/],
    [['backfill', 'x', ...span, ...job], /backfill: does not know what to do with "x"/],
    [['migrate', 'down'], /migrate: takes up or status, got "down"/],
    [['migrate', 'up', 'up'], /migrate: takes up or status/],
  ]

  it('is refused before any database is made: exit code 64, one line that names the option', async () => {
    const never = join(folder, 'never/ledger.db')
    const check = async ([args, pattern]: [string[], RegExp]) => {
      const { code, stdout, stderr } = await run(args, { env: { RUNLEDGER_DB: `sqlite:${never}` } })
      const said = `runledger ${args.join(' ').slice(0, 80)}: ${stderr}`
      assert.deepEqual([code, stdout], [64, ''], said)
      assert.match(stderr, /^runledger: INVALID_OPTION: [^\n]+\n$/, said)
      assert.match(stderr, pattern, said)
    }
    for (let n = 0; n < refused.length; n += 2) await Promise.all(refused.slice(n, n + 2).map(check))
    assert.deepEqual([existsSync(never), existsSync(join(folder, 'never')), existsSync(marker)], [false, false, false])
  })

  it('a file that is no ledger, or cannot be one, is refused as unavailable: 69', async () => {
    for (const [url, problem] of [[`sqlite:${folder}`, 'it is a folder'], ['sqlite:/dev/null/x/l.db', 'a part of its path is not a folder'], [`sqlite:${import.meta.filename}`, 'it is not a SQLite database']] as const) {
      const { code, stderr } = await run(exec(), { env: { RUNLEDGER_DB: url } })
      assert.deepEqual([code, stderr], [69, `runledger: DATABASE_UNAVAILABLE: SQLite file ${url.slice('sqlite:'.length)}: ${problem}\n`])
    }
    assert.ok(!existsSync(marker))
  })
})

describe('odd input that is none', () => {
  const ledger = embeddedLedger()

  it('a key may have spaces within, quotes, any script and emoji, up to 200 characters with the task', async () => {
    for (const key of ['a b', `it's "quoted"; drop table task_runs;--`, 'café', 'cafe\u0301', 'ключ', '💥'.repeat(198)]) {
      assert.equal((await ledger.run(['exec', '--task', 't', '--key', key, '--', 'true'])).code, 0)
      const { stdout } = await ledger.run(['show', `t:${key}`, '--json'])
      assert.equal((JSON.parse(stdout.split('\n')[0]!) as { task_key: string }).task_key, `t:${key}`)
    }
    assert.deepEqual(await ledger.sql('select count(*) as runs from task_runs'), [{ runs: 6 }])
  })

  it("what stands after -- is the job's, however much it looks like ours", async () => {
    const { code, stdout } = await ledger.run(['exec', '--task', 'args', '--', 'printf', '%s\n', '--task', '--', '--db=x', '', 'a  b'])
    assert.deepEqual([code, stdout], [0, '--task\n--\n--db=x\n\na  b\n'])
  })
})

eachDatabase('bad input', (db) => {
  const ledger = ledgerOn(db)

  it('leaves not a line in a ledger that is there', async () => {
    const marker = join(newFolder(), 'marker')
    for (const flags of [['--key', 'a\tb'], ['--cron', '0 0 30 2 *'], ['--overlap', 'wait'], ['--lease', '1ms']]) assert.equal((await ledger.run(['exec', '--task', 't', ...flags, ...sh(`touch ${marker}`)])).code, 64)
    assert.equal((await ledger.run(['exec', '--task', 't', '--', 'no-such-command'])).code, 127)
    for (const table of ['task_runs', 'task_attempts', 'task_fences', 'tasks']) assert.deepEqual(await ledger.sql(`select * from ${table}`), [], table)
    assert.ok(!existsSync(marker))
  })
})

eachServer('bad input', (db) => {
  const ledger = ledgerOn(db)
  const launch = (marker: string) => ['exec', '--task', 't', '--connect-timeout', '300ms', ...sh(`touch ${marker}`)]

  it('78 when the schema is behind, and the job was not started', async () => {
    const marker = join(newFolder(), 'marker')
    const { code, stderr } = await run(launch(marker), { env: { RUNLEDGER_DB: await db.url() } })
    assert.deepEqual([code, existsSync(marker)], [78, false])
    assert.match(stderr, /^runledger: SCHEMA_BEHIND: [^\n]* lacks 0001-ledger[^;\n]*; run 'runledger migrate' once\n$/)
  })

  it('69 when the database is not there, the user is refused, or nobody answers, after no more than --connect-timeout', async (t) => {
    const marker = join(newFolder(t), 'marker')
    const proxy = await faultProxy(ledger.url)
    t.after(() => proxy.close())
    proxy.mode = 'blackhole'
    const nobody = Object.assign(new URL(ledger.url), { username: 'nobody_such', password: 'x' }).href
    for (const [url, problem] of [[`${ledger.url}_gone`, 'the database does not exist'], [nobody, 'the server refused this user'], [proxy.url, 'it does not answer']] as const) {
      const begun = performance.now()
      const { code, stderr } = await run(launch(marker), { env: { RUNLEDGER_DB: url } })
      assert.equal(code, 69)
      assert.match(stderr, new RegExp(`^runledger: DATABASE_UNAVAILABLE: [^\n]*${problem}[^\n]*\n$`))
      assert.ok(performance.now() - begun < 5000)
    }
    assert.ok(!existsSync(marker))
  })
})

onlyOn('postgres', 'bad input', (db) => {
  const ledger = ledgerOn(db)

  it('case 59: 69 on a read-only database, and the job was not started', async () => {
    const marker = join(newFolder(), 'marker')
    await ledger.sql(`alter database ${new URL(ledger.url).pathname.slice(1)} set default_transaction_read_only = on`)
    await killSessions(db, ledger.url) // It is for new sessions, and a pooler keeps some.
    const { code, stderr } = await ledger.run(['exec', '--task', 't', '--connect-timeout', '300ms', ...sh(`touch ${marker}`)])
    assert.deepEqual([code, existsSync(marker)], [69, false])
    assert.match(stderr, /^runledger: DATABASE_UNAVAILABLE: [^\n]*read-only[^\n]*\n$/)
    assert.deepEqual(await ledger.sql('select * from task_runs'), [])
  })
})

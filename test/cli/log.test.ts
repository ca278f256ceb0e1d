/** Log lines: fixed fields in a fixed order, one line an event, for people and for programs. */
import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { describe, it } from 'node:test'
import { embeddedLedger, fieldsOf, sh } from '../support/cli.ts'

const UUID7 = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
const TIME = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z'
const WHO = `instance=${UUID7} host=${hostname()} pid=\\d+ launcher=cron`
const env = { RUNLEDGER_LAUNCHER: 'cron' }

describe('log', () => {
  const ledger = embeddedLedger()
  const launch = ['exec', '--task', 'daily_news', '--cron', '0 18 * * *', '--tz', 'Asia/Shanghai', '--at', '2026-09-20T10:00:01Z']

  it("logfmt has the fields of the design's example, in its order", async () => {
    const { stderr } = await ledger.run([...launch, '--', 'true'], { env })
    const head = `task=daily_news key=daily_news:2026-09-20-18:00 ${WHO} attempt=1 fence=1`
    assert.match(stderr, new RegExp(`^${head} status=started time=${TIME}\n${head} status=completed exit_code=0 time=${TIME}\n$`))
  })

  it('a conflict says why, and who stands in the way since when', async () => {
    const { stderr } = await ledger.run([...launch, '--', 'true'], { env })
    assert.match(stderr, new RegExp(`^task=daily_news key=daily_news:2026-09-20-18:00 ${WHO} status=conflict reason=done held_by_host=\\S+ held_by_pid=\\d+ held_by_instance=${UUID7} held_since=${TIME} time=${TIME}\n$`))
  })

  it('a failure says how, and when the next attempt will be', async () => {
    const { stderr } = await ledger.run(['exec', '--task', 'twice', '--key', 'k', '--max-attempts', '2', '--backoff', '20ms', ...sh('exit 7')], { env })
    const failed = stderr.split('\n').filter((line) => line.includes('status=failed'))
    assert.match(failed[0]!, new RegExp(`^task=twice key=twice:k ${WHO} attempt=1 fence=1 status=failed reason=exit exit_code=7 retry_in=0\\.02\\d?s time=${TIME}$`))
    assert.match(failed[1]!, new RegExp(`^task=twice key=twice:k ${WHO} attempt=2 fence=2 status=failed reason=exit exit_code=7 time=${TIME}$`))
  })

  it('json is an object a line with the same names in the same order, and numbers are numbers', async () => {
    const { stderr } = await ledger.run(['exec', '--task', 'json', '--key', 'k', '--log-format', 'json', '--', 'true'], { env })
    const [started, completed] = stderr.trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
    assert.deepEqual(Object.keys(started!), ['task', 'key', 'instance', 'host', 'pid', 'launcher', 'attempt', 'fence', 'status', 'time'])
    assert.deepEqual(Object.keys(completed!), ['task', 'key', 'instance', 'host', 'pid', 'launcher', 'attempt', 'fence', 'status', 'exit_code', 'time'])
    assert.deepEqual([started!['attempt'], started!['fence'], typeof started!['pid'], completed!['exit_code'], completed!['status']], [1, 1, 'number', 0, 'completed'])
  })

  it('a value that would break the line apart is quoted, and can be read back', async () => {
    const key = 'a b="c" \\ 💥'
    const { stderr } = await ledger.run(['exec', '--task', 'odd', '--key', key, '--', 'true'], { env })
    assert.equal(stderr.trimEnd().split('\n').length, 2)
    assert.equal(fieldsOf(stderr)['key'], `odd:${key}`)
    assert.match(stderr, /^task=odd key="odd:a b=\\"c\\" \\\\ 💥" instance=/)
  })

  it('the launcher is found without being told: the program that started us, past shells and such', async () => {
    const { stderr } = await ledger.run(['exec', '--task', 'found', '--', 'true'], { under: ['sh', '-c', 'env -- "$@"; exit $?', 'sh'] })
    assert.match(fieldsOf(stderr)['launcher']!, /^[\w.@:/-]+$/)
    assert.doesNotMatch(fieldsOf(stderr)['launcher']!, /^(sh|dash|env)$/)
  })
})

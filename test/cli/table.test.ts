/** Tables for people: they fit the terminal, are coloured there only, and tell the time of the run's own zone. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { mayColour, paint } from '../../src/cli/colour.ts'
import { table, zonedInstant } from '../../src/cli/table.ts'
import { BINARY, embeddedLedger } from '../support/cli.ts'

describe('tables', () => {
  it('no line is longer than the terminal is wide, and none ends in spaces', () => {
    const text = table(['KEY', 'NOTE'], [['a', 'x'.repeat(50)], ['long-key', '']], 20)
    assert.deepEqual(text.split('\n'), ['KEY       NOTE', `a         ${'x'.repeat(9)}…`, 'long-key', ''])
    for (const width of [1, 5, 19, 20, 80]) for (const line of table(['KEY', 'NOTE'], [['key', 'note note note']], width).split('\n')) assert.ok(line.length <= width)
  })

  it('an instant is told on the clock of the zone with UTC beside it, also over a clock change and at another date', () => {
    assert.equal(zonedInstant(new Date('2026-09-20T10:00:01Z'), 'Asia/Shanghai'), '2026-09-20 18:00:01+08:00 (10:00:01Z)')
    assert.equal(zonedInstant(new Date('2026-09-20T20:00:01Z'), 'Asia/Shanghai'), '2026-09-21 04:00:01+08:00 (2026-09-20 20:00:01Z)')
    assert.deepEqual(['2026-11-01T05:30:00Z', '2026-11-01T06:30:00Z'].map((at) => zonedInstant(new Date(at), 'America/New_York')), ['2026-11-01 01:30:00-04:00 (05:30:00Z)', '2026-11-01 01:30:00-05:00 (06:30:00Z)'])
    assert.deepEqual([zonedInstant(new Date('2026-09-20T10:00:01Z'), 'UTC'), zonedInstant(new Date('2026-09-20T10:00:01Z'), null), zonedInstant(null, 'Asia/Shanghai')], ['2026-09-20 10:00:01Z', '2026-09-20 10:00:01Z', '-'])
  })

  it('colour is for a terminal, and not with NO_COLOR or on a dumb one', () => {
    assert.deepEqual([mayColour(true, {}), mayColour(false, {}), mayColour(true, { NO_COLOR: '1' }), mayColour(true, { TERM: 'dumb' }), mayColour(true, { NO_COLOR: '' })], [true, false, false, false, true])
    assert.deepEqual([paint('x', 'red', true), paint('x', null, true), paint('x', 'red', false)], ['\u001b[31mx\u001b[39m', 'x', 'x'])
  })
})

describe('runs and show', () => {
  const ledger = embeddedLedger()
  /** Under a terminal of its own. */
  const atTerminal = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
    spawnSync('script', ['-qec', [process.execPath, BINARY, ...args].join(' '), '/dev/null'], { encoding: 'utf8', env: { PATH: process.env['PATH'], TERM: 'xterm', RUNLEDGER_DB: ledger.url, ...env } }).stdout

  it('tell the time of the run with UTC beside it', async () => {
    await ledger.run(['exec', '--task', 'news', '--cron', '0 18 * * *', '--tz', 'Asia/Shanghai', '--at', '2026-09-20T10:00:00Z', '--', 'true'])
    assert.match((await ledger.run(['show', 'news:2026-09-20-18:00'])).stdout, /^window 2026-09-20 18:00:00\+08:00 \(10:00:00Z\) to 2026-09-21 18:00:00\+08:00 \(10:00:00Z\) \(Asia\/Shanghai\)/m)
    assert.match((await ledger.run(['runs'])).stdout, /^news:2026-09-20-18:00 {2}completed {2}1\/3 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+08:00 \((\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\dZ\)/m)
  })

  it('are coloured at a terminal and nowhere else', async () => {
    assert.match(atTerminal(['runs']), /\u001b\[32mcompleted\u001b\[39m/)
    assert.match(atTerminal(['doctor']), /\u001b\[32mok {7}\u001b\[39mconnection/)
    for (const text of [atTerminal(['runs'], { NO_COLOR: '1' }), (await ledger.run(['runs'])).stdout, atTerminal(['runs', '--json'])]) assert.ok(!text.includes('\u001b'))
  })
})

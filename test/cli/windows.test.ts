/** `runledger windows`: what a person and a program see. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlagValues, Io } from '../../src/cli/command.ts'
import { windowsCommand } from '../../src/cli/windows.ts'
import { assertRefused } from '../model/window/refusal.ts'

const NEW_YORK = { cron: '30 2 * * *', tz: 'America/New_York' }

async function run(flags: FlagValues): Promise<{ exit: number; out: string; err: string }> {
  const said = { out: '', err: '' }
  const io: Io = { out: (text) => void (said.out += text), err: (text) => void (said.err += text), env: {} }
  const exit = await windowsCommand.run({ flags, words: [], rest: [] }, io)
  return { exit, ...said }
}

async function refused(flags: FlagValues, option: string, pattern: RegExp): Promise<void> {
  const failure = await run(flags).then(() => undefined, (error: unknown) => error)
  assertRefused(() => { throw failure }, option, pattern)
}

test('--json prints one object a line with exactly window_start, window_end and label', async () => {
  const { exit, out, err } = await run({ ...NEW_YORK, from: '2026-03-07T00:00Z', to: '2026-03-09T00:00Z', json: true })
  assert.deepEqual([exit, err], [0, ''])
  assert.equal(out, [
    '{"window_start":"2026-03-07T07:30:00.000Z","window_end":"2026-03-08T07:00:00.000Z","label":"2026-03-07-02:30"}',
    '{"window_start":"2026-03-08T07:00:00.000Z","window_end":"2026-03-09T06:30:00.000Z","label":"2026-03-08-03:00"}',
    '',
  ].join('\n'))
})

test('--at shows the window that an instant belongs to', async () => {
  const { out } = await run({ every: '1d', tz: 'America/Havana', at: '2026-11-01T00:30-05:00', json: true })
  assert.deepEqual(JSON.parse(out), { window_start: '2026-11-01T04:00:00.000Z', window_end: '2026-11-02T05:00:00.000Z', label: '2026-11-01-00:00-04:00' })
})

test('without an instant it is the window of now, in UTC', async () => {
  const before = new Date()
  const shown = JSON.parse((await run({ cron: '* * * * *', json: true })).out) as { window_start: string; window_end: string; label: string }
  assert.ok(Date.parse(shown.window_start) <= Date.now() && before.getTime() < Date.parse(shown.window_end))
  assert.equal(shown.label, shown.window_start.replace('T', '-').slice(0, 16))
})

test('for a person there is a table, then what the schedule means and which clock changes it meets', async () => {
  const { out } = await run({ ...NEW_YORK, cron: ' 30  2 * * *', from: '2026-03-07T00:00Z', to: '2026-03-09T00:00Z' })
  assert.deepEqual(out.split('\n').slice(0, 5), [
    'LABEL             WINDOW START              WINDOW END',
    '2026-03-07-02:30  2026-03-07T07:30:00.000Z  2026-03-08T07:00:00.000Z',
    '2026-03-08-03:00  2026-03-08T07:00:00.000Z  2026-03-09T06:30:00.000Z',
    '',
    '30 2 * * * in America/New_York',
  ])
  assert.match(out, /^fixed time/m)
  assert.match(out, /^clocks: 2026-03-08T07:00:00.000Z forward 1h/m)
})

test('with --at the clock changes of the year that follows are explained', async () => {
  const { out } = await run({ ...NEW_YORK, at: '2026-01-15T00:00Z' })
  assert.equal(out.match(/^clocks: /gm)?.length, 2)
})

test('a span without windows says so to a person, and nothing to a program', async () => {
  const span = { cron: '0 0 1 1 *', from: '2026-02-01T00:00Z', to: '2026-03-01T00:00Z' }
  assert.match((await run(span)).out, /^no window begins in that span/)
  assert.equal((await run({ ...span, json: true })).out, '')
})

test('columns stay in line when some labels carry an offset', async () => {
  const { out } = await run({ cron: '0 * * * *', tz: 'America/New_York', from: '2026-11-01T04:00Z', to: '2026-11-01T08:00Z' })
  assert.equal(new Set(out.split('\n').slice(1, 5).map((line) => line.indexOf('2026-11-01T'))).size, 1)
})

test('a schedule without quotes, which a shell takes apart, is refused', async () => {
  const io: Io = { out: () => assert.fail(), err: () => assert.fail(), env: {} }
  const failure = await windowsCommand.run({ flags: { cron: '30' }, words: ['2', 'a', 'b'], rest: [] }, io).then(() => undefined, (error: unknown) => error)
  assertRefused(() => { throw failure }, 'windows', /takes no word, got "2"; put the schedule in quotes/)
})

test('bad input is refused at the door, naming the option', async () => {
  await refused({}, 'cron', /give a schedule, --cron or --every/)
  await refused({ cron: '* * * * *', every: '1d' }, 'every', /not both/)
  await refused({ cron: '' }, 'cron', /is empty/)
  await refused({ cron: '61 * * * *' }, 'cron', /minute "61"/)
  await refused({ every: '1d', tz: 'Mars/Phobos' }, 'tz', /no time zone/)
  await refused({ every: '1d', tz: '' }, 'tz', /must be UTC/)
  await refused({ every: '1d', at: '2026-01-01T00:00' }, 'at', /local time/)
  await refused({ every: '1d', from: '2026-01-01T00:00Z' }, 'to', /go together/)
  await refused({ every: '1d', to: '2026-01-01T00:00Z' }, 'from', /go together/)
  await refused({ every: '1d', at: '2026-01-01T00:00Z', from: '2026-01-01T00:00Z', to: '2026-01-02T00:00Z' }, 'at', /not both/)
  await refused({ every: '1d', from: '2026-01-02T00:00Z', to: '2026-01-02T00:00Z' }, 'to', /later than --from/)
  await refused({ cron: '0 0 1 6 *', at: '0001-01-01T00:00Z' }, 'at', /no window began/)
})

test('100,000 windows are shown, one more is refused before anything is printed', async () => {
  const { out } = await run({ every: '1m', from: '2026-01-01T00:00Z', to: '2026-03-11T10:40Z', json: true })
  assert.equal(out.split('\n').length - 1, 100_000)
  await refused({ every: '1m', from: '2026-01-01T00:00Z', to: '2026-03-11T10:41Z', json: true }, 'to', /more than 100000 windows/)
})

test('the help names every flag', () => {
  for (const flag of Object.keys(windowsCommand.options)) assert.match(windowsCommand.help, new RegExp(`--${flag} `))
})

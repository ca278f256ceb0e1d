/** What holds for every schedule, in every zone, at every instant. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Schedule } from '../../../src/model/window/schedule.ts'
import { cron, every } from '../../../src/model/window/schedule.ts'
import type { Window } from '../../../src/model/window/window.ts'
import { launchWindow, nextStart, windowAt, windowsBetween } from '../../../src/model/window/window.ts'
import { cronEntries, periods, places } from './random-schedules.ts'
import { milliseconds } from './stopwatch.ts'

const RARE = ['0 0 29 2 *', '0 0 29 2 */7', '30 2 29 2 1', '0 0 LW 2 *', '0 3 * 2 1#5', '* * 29 2 *', '59 23 31 12 *', '*/7 1-3 8-14 3,11 */7']

/** Whether an expression is accepted; random day fields may never come. */
function isPossible(expression: string): boolean {
  try {
    cron(expression)
    return true
  } catch {
    return false
  }
}

const expressions = fc.oneof(
  { weight: 4, arbitrary: cronEntries.map((entry) => entry.expression).filter(isPossible) },
  { weight: 1, arbitrary: fc.constantFrom(...RARE) },
)

interface Situation {
  readonly schedule: Schedule
  readonly now: Date
}

const situations: fc.Arbitrary<Situation> = fc
  .tuple(fc.oneof({ weight: 3, arbitrary: expressions.map((text) => ['cron', text] as const) }, { weight: 1, arbitrary: periods.map((text) => ['every', text] as const) }), places)
  .map(([[kind, text], { zone, at }]) => ({
    schedule: kind === 'cron' ? cron(text, zone) : every(text, zone),
    now: new Date(at),
    toString: () => `${kind} ${JSON.stringify(text)} ${zone} at ${new Date(at).toISOString()}`,
  }))

function promise(title: string, check: (situation: Situation) => void, numRuns = 500): void {
  test(title, () => fc.assert(fc.property(situations, check), { numRuns }))
}

promise('the window of an instant contains it', ({ schedule, now }) => {
  const window = windowAt(schedule, now)!
  assert.ok(window.start <= now && now < window.end)
})

promise('the window of a window\'s first instant, and of its last, is the window', ({ schedule, now }) => {
  const window = windowAt(schedule, now)!
  assert.deepEqual(windowAt(schedule, window.start), window)
  assert.deepEqual(windowAt(schedule, new Date(window.end.getTime() - 1)), window)
})

promise('no window begins between the start of the current one and now', ({ schedule, now }) => {
  const { start } = windowAt(schedule, now)!
  assert.deepEqual([...windowsBetween(schedule, new Date(start.getTime() + 1), new Date(now.getTime() + 1))], [])
})

promise('the next start is strictly later, and begins the window that follows', ({ schedule, now }) => {
  const next = nextStart(schedule, now)
  assert.ok(next > now)
  assert.deepEqual(windowAt(schedule, next)!.start, next)
  assert.deepEqual(windowAt(schedule, new Date(next.getTime() - 1))!.end, next)
})

promise('a launch within `early` of the next start never falls into a window before the current one or after the next', ({ schedule, now }) => {
  const [current, next] = [windowAt(schedule, now)!.start.getTime(), nextStart(schedule, now).getTime()]
  const launched = launchWindow(schedule, now, 2000)!.start.getTime()
  assert.ok(launched === current || (launched === next && next - now.getTime() <= 2000))
})

/** The windows that begin from now on, for three days or until there are two hundred. */
function following({ schedule, now }: Situation): Window[] {
  const windows: Window[] = []
  for (const window of windowsBetween(schedule, now, new Date(now.getTime() + 3 * 86_400_000))) {
    if (windows.push(window) === 200) break
  }
  return windows
}

promise('a listing has each window that a look at its start finds, end to end', (situation) => {
  const windows = following(situation)
  for (const [index, window] of windows.entries()) {
    assert.deepEqual(windowAt(situation.schedule, window.start), window)
    if (index > 0) assert.deepEqual(window.start, windows[index - 1]!.end)
  }
}, 100)

promise('no two windows have one label', (situation) => {
  const windows = following(situation)
  assert.equal(new Set(windows.map((window) => window.label)).size, windows.length)
}, 300)

test('no call takes 50 ms, however rare the date', (context) => {
  let slowest = 0
  fc.assert(fc.property(situations, ({ schedule, now }) => {
    windowAt(schedule, now) // Intl's first look at a zone is not the engine's
    const calls = [() => windowAt(schedule, now), () => nextStart(schedule, now), () => launchWindow(schedule, now, 2000), () => cron('0 0 29 2 */7', schedule.zone)]
    for (const call of calls) {
      const taken = milliseconds(call)
      slowest = Math.max(slowest, taken)
      assert.ok(taken < 50, `${taken} ms`)
    }
  }), { numRuns: 500 })
  context.diagnostic(`slowest call ${slowest.toFixed(2)} ms`)
})

/** `runledger windows`: which windows a schedule has, and why, before anything is run by it. */
import { invalidOption } from '../model/errors.ts'
import { explain } from '../model/window/explain.ts'
import { parseInstant } from '../model/window/instant.ts'
import type { Schedule } from '../model/window/schedule.ts'
import { cron, every } from '../model/window/schedule.ts'
import type { Window } from '../model/window/window.ts'
import { windowAt, windowsBetween } from '../model/window/window.ts'
import type { Command, FlagValues } from './command.ts'
import { EXIT } from './exit.ts'
import { text } from './flags.ts'
import { table } from './table.ts'

/** Ten weeks of one window a minute; more is a slip of the keyboard, and fills the screen and the memory. */
const MOST_WINDOWS = 100_000

const YEAR_MS = 366 * 86_400_000

const help = `
Usage: runledger windows --cron E | --every P [--tz Z] [--at INSTANT | --from A --to B] [--json]

Shows the windows of a schedule and explains them. No database is opened.

  --cron E      cron expression: 5 fields, 6 with the second first, or @yearly @monthly @weekly @daily @hourly
  --every P     period: 30s 15m 1h (elapsed time) or 1d 1w 1mo 3mo 1y (by the calendar)
  --tz Z        IANA time zone the schedule is read in (default UTC)
  --at INSTANT  the window that INSTANT belongs to (default now)
  --from A      with --to B: the windows that begin from A until before B, at most ${MOST_WINDOWS}
  --json        one JSON object a window: window_start, window_end, label

An INSTANT is ISO 8601 with Z or an offset: 2026-09-20T10:00:00Z, 2026-09-20T18:00+08:00.

Exit codes: 0 shown; 64 the schedule, the zone or an instant is not valid

Example: runledger windows --cron '30 2 * * *' --tz America/New_York --from 2026-03-07T00:00Z --to 2026-03-10T00:00Z
`

export const windowsCommand: Command = {
  name: 'windows',
  summary: 'show and explain the windows of a schedule',
  help,
  options: {
    cron: { type: 'string' },
    every: { type: 'string' },
    tz: { type: 'string' },
    at: { type: 'string' },
    from: { type: 'string' },
    to: { type: 'string' },
  },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('windows', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}; put the schedule in quotes`)
    const schedule = scheduleOf(flags)
    const span = spanOf(flags)
    const windows = span ? windowsIn(schedule, span.from, span.to) : [windowOf(schedule, flags)]
    if (flags['json']) {
      for (const window of windows) io.out(`${JSON.stringify(windowJson(window))}\n`)
      return EXIT.ok
    }
    const from = span?.from ?? windows[0]!.start
    const explained = explain(schedule, from, span?.to ?? new Date(from.getTime() + YEAR_MS))
    io.out(tableOf(windows))
    io.out(`\n${schedule.source.trim().replace(/\s+/g, ' ')} in ${schedule.zone}\n${explained.join('\n')}\n`)
    return EXIT.ok
  },
}

function scheduleOf(flags: FlagValues): Schedule {
  const [expression, period, zone] = [text(flags, 'cron'), text(flags, 'every'), text(flags, 'tz')]
  if (expression !== undefined && period !== undefined) throw invalidOption('every', 'give --cron or --every, not both')
  if (expression !== undefined) return cron(expression, zone)
  if (period !== undefined) return every(period, zone)
  throw invalidOption('cron', 'give a schedule, --cron or --every')
}

function spanOf(flags: FlagValues): { from: Date; to: Date } | undefined {
  const [from, to] = [text(flags, 'from'), text(flags, 'to')]
  if (from === undefined && to === undefined) return undefined
  if (from === undefined || to === undefined) throw invalidOption(from === undefined ? 'from' : 'to', '--from and --to go together')
  if (text(flags, 'at') !== undefined) throw invalidOption('at', 'give --at or --from and --to, not both')
  const span = { from: parseInstant('from', from), to: parseInstant('to', to) }
  if (span.from < span.to) return span
  throw invalidOption('to', `must be later than --from, got ${to}`)
}

function windowOf(schedule: Schedule, flags: FlagValues): Window {
  const at = text(flags, 'at')
  const now = at === undefined ? new Date() : parseInstant('at', at)
  const window = windowAt(schedule, now)
  if (window) return window
  throw invalidOption('at', `no window began at or before ${now.toISOString()}`)
}

function windowsIn(schedule: Schedule, from: Date, to: Date): Window[] {
  const windows: Window[] = []
  for (const window of windowsBetween(schedule, from, to)) {
    if (windows.push(window) > MOST_WINDOWS) throw invalidOption('to', `more than ${MOST_WINDOWS} windows begin in that span; ask for a shorter one`)
  }
  return windows
}

function windowJson({ start, end, label }: Window): Record<'window_start' | 'window_end' | 'label', string> {
  return { window_start: start.toISOString(), window_end: end.toISOString(), label }
}

function tableOf(windows: readonly Window[]): string {
  if (windows.length === 0) return 'no window begins in that span\n'
  return table(['LABEL', 'WINDOW START', 'WINDOW END'], windows.map(({ label, start, end }) => [label, start.toISOString(), end.toISOString()]))
}

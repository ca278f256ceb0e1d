/** `runledger missing`: the windows that should have run, and what became of them. */
import type { MissedWindow } from '../index.ts'
import { durationMs } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { text, wholeNumber } from './flags.ts'
import { jsonLine } from './log.ts'
import { shortInstant, span, table } from './table.ts'

const help = `
Usage: runledger missing [--task T] [--since D] [--too-long D] [--limit N] [--json]

Lists the windows that should have run and have no run completed in time, by task, the oldest first: from the database
alone, whether or not anything is running. Instants are UTC; the key has the time in the task's zone.

  missing           nobody ran it, and its grace is over; the note says whether a launch was refused, and why
  failed            its last attempt failed
  lost              its owner stopped renewing the lease, and nobody has taken it up
  late              completed, but begun later than its grace
  running           at it now
  running_too_long  likewise, for longer than --too-long
  pending           recorded, and waiting for a launch to take it up

Schedules are those of 'runledger tasks': learned from launches by --cron or --every, or set. Windows count from when
the task was first known (or 'runledger tasks set --since'), and not before what was pruned.

  --task T       only this task
  --since D      windows that began in the last D (7d)
  --too-long D   by default twice the longest of the task's last 20 completed runs, at least 1m; none with fewer than 3
  --limit N      at most N lines (1000)

Of a task with more than 50000 windows in that time, about the latest 50000 are looked at, and stderr says so.

Exit codes: 0 listed, or nothing to list; 64 usage; 69 the database is unavailable; 78 schema.

Example: runledger missing --task daily_news --since 30d
`

export const missingCommand: Command = {
  name: 'missing',
  summary: 'list windows that should have run and did not, or late',
  help,
  options: { task: { type: 'string' }, since: { type: 'string' }, 'too-long': { type: 'string' }, limit: { type: 'string' } },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('missing', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    const duration = (name: string) => (text(flags, name) === undefined ? undefined : durationMs(name, text(flags, name)!))
    const filter = { task: text(flags, 'task'), since: duration('since'), tooLong: duration('too-long'), limit: wholeNumber(flags, 'limit', 1, 100_000) ?? 1000 }
    const { windows, more, cut, unreadable } = await withLedger(flags, io, (ledger) => ledger.tasks.missing(filter))
    if (flags['json']) for (const window of windows) io.out(`${jsonLine(missedJson(window))}\n`)
    else io.out(windows.length === 0 ? 'no window is missing\n' : table(['KEY', 'STATE', 'WINDOW', 'BEGAN', 'LATE', 'NOTE'], windows.map(cells)))
    if (more) io.err(`runledger: there are more than ${filter.limit}; --task, --since or --limit show others\n`)
    for (const { task, from } of cut) io.err(`runledger: ${task} has very many windows; looked at those since ${from.toISOString()}\n`)
    for (const { task, problem } of unreadable) io.err(`runledger: the schedule of ${task} cannot be read on this host: ${problem}\n`)
    return EXIT.ok
  },
}

function missedJson({ task, taskKey, windowStart, windowEnd, windowZone, state, reason, lateSeconds, run }: MissedWindow) {
  return {
    task_name: task, task_key: taskKey, window_start: windowStart, window_end: windowEnd, window_zone: windowZone, state, reason, late_seconds: lateSeconds,
    attempt: run?.attempt ?? null, host: run?.host ?? null, pid: run?.pid ?? null, started_at: run?.startedAt ?? null, finished_at: run?.finishedAt ?? null, exit_code: run?.exitCode ?? null,
  }
}

function cells(window: MissedWindow): string[] {
  const { taskKey, state, windowStart, run } = window
  return [taskKey, state, shortInstant(windowStart), shortInstant(run?.startedAt ?? null), span(windowStart, run?.startedAt ?? null), note(window)]
}

function note({ reason, run, state }: MissedWindow): string {
  if (!run) return reason === null ? 'no launch' : `refused: ${reason}`
  const where = run.host === null ? '' : `${run.host} pid ${run.pid}`
  if (state === 'pending') return run.due ? 'due: the next launch takes it up' : `due at ${shortInstant(run.availableAt)}`
  if (state === 'lost' && run.leaseOver) return `${where} stopped renewing its lease`
  if (state === 'failed') return [reason, run.exitCode === null ? null : `exit ${run.exitCode}`, where].filter(Boolean).join(', ')
  return where
}

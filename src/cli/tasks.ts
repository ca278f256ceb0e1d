/** `runledger tasks`: what is known of each task; `runledger tasks set`: what it shall be. */
import type { Task, TaskLauncher } from '../index.ts'
import { formatDuration } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { text } from './flags.ts'
import { jsonLine } from './log.ts'
import { shortInstant, table } from './table.ts'
import { setTerms } from './tasks/set.ts'
import { taskJson } from './tasks/task-json.ts'

const help = `
Usage: runledger tasks [--task T] [--launchers] [--json]
       runledger tasks set --task T [--cron E | --every P | --no-schedule | --as-launched] [--tz Z] [--overlap P]
                           [--grace D] [--catch-up none|latest|all] [--since INSTANT] [--because TEXT]

Lists the tasks that are known, with schedule, zone and terms; --launchers: who launches them by which schedule.

A launch by --cron or --every tells the ledger its schedule, zone and --overlap. When a crontab is changed, so is the
task, and its windows count from then on; when two hosts launch it by different schedules, one stays, and 'runledger
tasks --launchers' shows both (the 50 launchers seen latest). What is set here is not changed by launches.

  --cron E, --every P       the schedule, in the zone --tz Z (UTC)
  --no-schedule             no window is expected any more
  --as-launched             schedule and overlap policy are again what launches say
  --overlap P               skip, wait, queue or allow, for people to read: what a launch does is its own --overlap
  --grace D                 how long after a window's beginning its run may begin without being late (5m)
  --catch-up P              windows that nobody ran: none (default), latest (the latest of them is run) or all
  --catch-up-max-age D      older windows are not caught up (7d)
  --catch-up-max-count N    nor more than N at once, the latest ones (100, at most 1000)
  --since INSTANT           windows are expected, and caught up, from here on; without it a new schedule counts from now
  --because TEXT            why; recorded with who and from where in task_actions

Catching up is done by the next 'runledger exec' of the task, the oldest window first, each under its own key. A window
whose launch was refused by --overlap skip or wait is not caught up: use --overlap queue to have it run.

Exit codes: 0 done; 64 usage; 69 the database is unavailable; 78 schema.

Example: runledger tasks set --task daily_news --grace 15m --catch-up latest --because 'OPS-12'
`

const string = { type: 'string' } as const
const boolean = { type: 'boolean' } as const

export const tasksCommand: Command = {
  name: 'tasks',
  summary: 'list tasks with their schedules, or set their terms',
  help,
  options: {
    task: string, launchers: boolean, cron: string, every: string, tz: string, 'no-schedule': boolean, 'as-launched': boolean, overlap: string, grace: string,
    'catch-up': string, 'catch-up-max-age': string, 'catch-up-max-count': string, since: string, because: string,
  },
  async run(invocation, io) {
    const { flags, words } = invocation
    if (words[0] === 'set' && words.length === 1) return setTerms(flags, io)
    if (words.length > 0) throw invalidOption('tasks', `takes set or nothing, got ${JSON.stringify(words.join(' ').slice(0, 60))}`)
    const extra = Object.keys(flags).find((name) => name in tasksCommand.options && !['task', 'launchers'].includes(name))
    if (extra !== undefined) throw invalidOption(extra, "goes with 'runledger tasks set'")
    const task = text(flags, 'task')
    await withLedger(flags, io, async (ledger) => {
      if (flags['launchers']) print(await ledger.tasks.launchers(task), launcherJson, ['TASK', 'SCHEDULE', 'ZONE', 'HOST', 'LAUNCHER', 'LAST SEEN'], launcherCells)
      else print(await ledger.tasks.list(task), taskJson, ['TASK', 'SCHEDULE', 'ZONE', 'OVERLAP', 'GRACE', 'CATCH-UP', 'EXPECTED SINCE', 'NOTE'], taskCells)
    })
    return EXIT.ok

    function print<T>(rows: readonly T[], json: (row: T) => Record<string, unknown>, header: readonly string[], cells: (row: T) => string[]): void {
      if (flags['json']) for (const row of rows) io.out(`${jsonLine(json(row))}\n`)
      else io.out(rows.length === 0 ? 'no tasks\n' : table(header, rows.map(cells)))
    }
  },
}

function taskCells({ name, schedule, zone, overlap, graceMs, catchUp, catchUpMaxAgeMs, catchUpMaxCount, expectedSince, ...task }: Task): string[] {
  const bounds = catchUp === 'none' ? '' : ` (${formatDuration(catchUpMaxAgeMs)}${catchUp === 'all' ? `, ${catchUpMaxCount}` : ''})`
  return [name, schedule ?? '-', zone ?? '-', overlap ?? '-', formatDuration(graceMs), `${catchUp}${bounds}`, shortInstant(expectedSince), note(task)]
}

function note({ scheduleSetAt, pausedAt, pausedBy, pausedBecause }: Pick<Task, 'scheduleSetAt' | 'pausedAt' | 'pausedBy' | 'pausedBecause'>): string {
  const paused = pausedAt && `paused ${shortInstant(pausedAt)}${pausedBy ? ` by ${pausedBy}` : ''}${pausedBecause ? `: ${pausedBecause}` : ''}`
  return [paused, scheduleSetAt && 'schedule set by hand'].filter(Boolean).join('; ')
}

function launcherCells({ task, schedule, zone, host, launcher, lastSeenAt }: TaskLauncher): string[] {
  return [task, schedule, zone, host, launcher, shortInstant(lastSeenAt)]
}

function launcherJson({ task, schedule, zone, host, launcher, firstSeenAt, lastSeenAt }: TaskLauncher) {
  return { task_name: task, schedule, zone, host, launcher, first_seen_at: firstSeenAt, last_seen_at: lastSeenAt }
}

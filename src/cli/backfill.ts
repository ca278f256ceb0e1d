/** `runledger backfill`: fills a span of windows, each under its own key, by the machinery of `exec`. */
import { BACKFILL_CHOICES } from '../model/backfill-choice.ts'
import { durationMs } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import { checkTaskName } from '../model/names.ts'
import { fill, type FillPlan } from './backfill/fill.ts'
import { showPlan } from './backfill/show-plan.ts'
import type { Command, FlagValues, Invocation, Io } from './command.ts'
import { findCommand } from './exec/find-command.ts'
import { instant, oneOf, required, text, wholeNumber } from './flags.ts'
import { launchOf, scheduleOf } from './launch-flags.ts'
import { openLog } from './log.ts'

const help = `
Usage: runledger backfill --task T --from A --to B [--only missing|failed|all] [flags] -- CMD [ARG…]
       runledger backfill --task T --from A --to B [--only missing|failed|all] --dry-run

Runs CMD for each window of the task that begins from A until before B (and has begun) and did not run, as exec would
have: under the window's own key, with RUNLEDGER_WINDOW_START and the rest. A window that is running or done is never
run a second time. Interrupted (SIGTERM, SIGINT), it ends its jobs as exec does, starts nothing more and leaves their
runs pending; started again, it goes on.

  --task T           the task
  --from A, --to B   instants with Z or an offset: 2026-09-20T10:00:00Z; at most 50000 windows,
                     and none from before what was pruned
  --only C           missing: nobody ran them (default); failed: their run failed; all: both. Pending ones always are
                     filled, cancelled ones never
  --cron E, --every P, --tz Z   another schedule than the one that 'runledger tasks' shows
  --dry-run          show what would be done with each window
  --parallel N       so many at once (1)
  --newest-first     the latest window first
  --lease D, --heartbeat D, --timeout D, --kill-after D, --max-attempts N, --backoff D   as in exec
  --because TEXT     why; recorded with who and from where in task_actions

With --parallel 1 no other run of the task goes on meanwhile: it waits while one does, and a launch that comes while a
job of the backfill runs meets an overlap, and does what its own policy says. With more than 1 the jobs exclude neither
each other nor ordinary runs of the task, like exec --overlap allow.

Exit codes: 0 all done; the code of the first job that failed; 128+n stopped by signal n; 64 usage; 69 the database is
unavailable; 73 the task is paused; 75 a lease was lost; 78 schema; 126/127 the command cannot be run / was not found.

Example: runledger backfill --task daily_news --from 2026-09-01T00:00Z --to 2026-09-08T00:00Z --only all -- bin/news
`

const string = { type: 'string' } as const
const boolean = { type: 'boolean' } as const

export const backfillCommand: Command = {
  name: 'backfill',
  summary: 'fill a span of windows that did not run or failed',
  help,
  options: {
    task: string, from: string, to: string, only: string, cron: string, every: string, tz: string, 'dry-run': boolean, parallel: string, 'newest-first': boolean,
    lease: string, heartbeat: string, timeout: string, 'kill-after': string, 'max-attempts': string, backoff: string, because: string,
  },
  async run(invocation, io) {
    const { flags, words, rest } = invocation
    if (words.length > 0) throw invalidOption('backfill', `does not know what to do with ${JSON.stringify(words[0]!.slice(0, 40))}; the command stands after --`)
    const plan = planOf(flags, io)
    if (flags['dry-run']) {
      if (rest.length > 0) throw invalidOption('dry-run', 'runs no command')
      return showPlan(plan, flags, io)
    }
    const [command, ...args] = commandOf(invocation)
    const found = findCommand(command, io.env, process.cwd())
    if ('problem' in found) {
      io.err(`runledger: ${found.problem}\n`)
      return found.exitCode
    }
    return fill({ ...plan, job: { path: found.path, argv0: command, args } }, io)
  },
}

function commandOf({ rest: [command, ...args] }: Invocation): [string, ...string[]] {
  if (command === undefined || command === '') throw invalidOption('backfill', 'needs a command after --, or --dry-run')
  return [command, ...args]
}

function planOf(flags: FlagValues, io: Io): Omit<FillPlan, 'job'> {
  const span = { task: checkTaskName(required(flags, 'task')), from: instantOf(flags, 'from'), to: instantOf(flags, 'to'), only: oneOf(flags, 'only', BACKFILL_CHOICES), schedule: scheduleOf(flags) }
  if (span.from >= span.to) throw invalidOption('to', 'must be later than --from')
  const parallel = wholeNumber(flags, 'parallel', 1, 64) ?? 1
  const { window: _, ...launch } = launchOf(flags, new Date())
  return {
    flags,
    log: openLog(flags, io),
    launch: { ...launch, overlap: parallel === 1 ? 'skip' : 'allow' },
    timeoutMs: text(flags, 'timeout') === undefined ? null : durationMs('timeout', text(flags, 'timeout')!),
    graceMs: durationMs('kill-after', text(flags, 'kill-after') ?? '5s', { zero: true }),
    conflictExitCode: 0,
    onlyOwn: true,
    span,
    parallel,
    newestFirst: flags['newest-first'] === true,
    because: text(flags, 'because'),
  }
}

function instantOf(flags: FlagValues, name: string): Date {
  required(flags, name)
  return instant(flags, name)!
}

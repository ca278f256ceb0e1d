/** `runledger exec`: runs a command as the one run of its window, and records what happened. */
import { durationMs } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command, FlagValues, Invocation, Io } from './command.ts'
import { findCommand } from './exec/find-command.ts'
import { underInit } from './exec/init.ts'
import { execAll, type ExecPlan } from './exec/launches.ts'
import { text, wholeNumber } from './flags.ts'
import { LAUNCH_FLAGS, launchOf } from './launch-flags.ts'
import { openLog } from './log.ts'

const help = `
Usage: runledger exec --task T [--cron E | --every P | --key L] [flags] -- CMD [ARG…]

Runs CMD if, and only if, it could claim the run for it: once per window, on whatever host. First takes up what is
pending and due of the task (retries, recovered crashes, queued windows), then its own window.

  --task T               the task's name: letters, digits and _ . / -
  --cron E               windows of a cron expression, such as '0 18 * * *'
  --every P              windows of a period: 15m, 1h (on the Unix epoch), 1d, 1w, 1mo, 3mo, 1y (calendar, in the zone)
  --key L                a key of your own instead; without any of the three only overlap is excluded
  --tz Z                 the zone of --cron and --every (UTC)
  --at INSTANT           name the window of this instant instead of now, to run a missed one by hand
  --early D              a launch this little before a window's start is meant for that window (2s)
  --overlap P            when a run of the task is processing: skip (default), wait, queue or allow
  --wait-timeout D       how long --overlap wait waits
  --lease D              how long the claim outlives its last heartbeat (60s); a heartbeat every fifth of it
  --heartbeat D          another interval; at most a third of the lease
  --timeout D            end the job after D: exit code 124
  --kill-after D         between the first signal to the job and SIGKILL (5s)
  --max-attempts N       attempts in all, failed ones too (without it a failure is final; a crash is repeated twice)
  --backoff D            pause before the second attempt, doubled for each further one (10s)
  --conflict-exit-code N exit code of a launch that lost (0)
  --only-own             take up nothing but the own window

The job sees RUNLEDGER_TASK, _TASK_KEY, _WINDOW_START, _WINDOW_END, _ATTEMPT, _INSTANCE_ID, _FENCE, _IDEMPOTENCY_KEY.

Exit codes: the job's own; 128+n if it died of signal n; 0 or --conflict-exit-code for a conflict; 64 usage; 69 the
database is unavailable (nothing was started); 70 a bug; 75 the lease was lost; 78 schema behind or ahead; 124 timeout;
126/127 the command cannot be run / was not found.

Example: runledger exec --task daily_news --cron '0 * * * *' --tz Asia/Shanghai -- php bin/daily_news.php
`

const string = { type: 'string' } as const
const boolean = { type: 'boolean' } as const

export const execCommand: Command = {
  name: 'exec',
  summary: 'run a command as the one run of its window',
  help,
  options: { ...LAUNCH_FLAGS, timeout: string, 'kill-after': string, 'conflict-exit-code': string, 'only-own': boolean },
  async run(invocation, io) {
    const db = underInit()
    const startedAt = new Date()
    const plan = planOf(db === undefined ? invocation.flags : { ...invocation.flags, db }, io, startedAt)
    const [command, ...args] = commandOf(invocation)
    const found = findCommand(command, io.env, process.cwd())
    if ('problem' in found) {
      io.err(`runledger: ${found.problem}\n`)
      return found.exitCode
    }
    return execAll({ ...plan, job: { path: found.path, argv0: command, args } }, io)
  },
}

function commandOf({ words, rest }: Invocation): [string, ...string[]] {
  if (words.length > 0) throw invalidOption('exec', `does not know what to do with ${JSON.stringify(words[0]!.slice(0, 40))}; the command stands after --`)
  const [command, ...args] = rest
  if (command === undefined || command === '') throw invalidOption('exec', 'needs a command after --')
  return [command, ...args]
}

function planOf(flags: FlagValues, io: Io, startedAt: Date): Omit<ExecPlan, 'job'> {
  return {
    flags,
    log: openLog(flags, io),
    launch: launchOf(flags, startedAt),
    timeoutMs: text(flags, 'timeout') === undefined ? null : durationMs('timeout', text(flags, 'timeout')!),
    graceMs: durationMs('kill-after', text(flags, 'kill-after') ?? '5s', { zero: true }),
    conflictExitCode: wholeNumber(flags, 'conflict-exit-code', 0, 255) ?? 0,
    onlyOwn: flags['only-own'] === true,
  }
}

/** `runledger check`: for monitoring systems, in the manner of their plugins. */
import { isLedgerError, type Problem } from '../index.ts'
import { durationMs } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command, FlagValues, Io } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT, lineOf } from './exit.ts'
import { text, wholeNumber } from './flags.ts'
import { jsonLine } from './log.ts'

const help = `
Usage: runledger check [--task T] [--failures N] [--conflicts N] [--stale-after D] [--json]

One line with the verdict, then one line a problem, the critical ones first; with --json only the problems. Read from
the database alone; nothing else has to be running, and nothing is written.

  overdue    critical: the latest window whose grace is over has not begun (warning, if its launch met another run of the
             task); paused tasks are left out. Earlier gaps are for 'runledger missing'
  failed     warning: the last run failed; critical: N in a row
  in_doubt   critical: nobody knows whether an effect happened
  stale      warning: a lease ran out, and for D neither a launch nor a reaper closed the attempt
  conflicts  warning: N launches of a task met another of its runs in the last hour
  schema     critical: the schema is behind this version

  --task T         only this task
  --failures N     failed runs in a row that are critical (3)
  --conflicts N    launches that met another run (10)
  --stale-after D  how long a lease may be over (5m)

Exit codes: 0 OK, 1 warning, 2 critical, 3 unknown (the database is unavailable, or newer than this version), as monitoring
plugins have them; 64 usage.

Example: runledger check --failures 2 --stale-after 10m
`

/** What monitoring plugins exit with. */
const PLUGIN = { ok: 0, warning: 1, critical: 2, unknown: 3 } as const

export const checkCommand: Command = {
  name: 'check',
  summary: 'exit 0, 1 or 2 for monitoring, with a line a problem',
  help,
  options: { task: { type: 'string' }, failures: { type: 'string' }, conflicts: { type: 'string' }, 'stale-after': { type: 'string' } },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('check', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    const options = optionsOf(flags)
    try {
      return report(flags, io, await withLedger(flags, io, (ledger) => ledger.tasks.problems(options)))
    } catch (error) {
      if (isLedgerError(error) && error.code === 'SCHEMA_BEHIND') return report(flags, io, [{ severity: 'critical', kind: 'schema', task: null, taskKey: null, since: null, message: error.message }])
      if (!isLedgerError(error) || !['DATABASE_UNAVAILABLE', 'SCHEMA_AHEAD'].includes(error.code)) throw error
      if (flags['json']) io.err(lineOf(error, io.env))
      else io.out(`runledger UNKNOWN: ${error.message}\n`)
      return PLUGIN.unknown
    }
  },
}

function optionsOf(flags: FlagValues) {
  const staleAfter = text(flags, 'stale-after')
  return {
    task: text(flags, 'task'),
    ...(flags['failures'] !== undefined && { failures: wholeNumber(flags, 'failures', 1, 1000)! }),
    ...(flags['conflicts'] !== undefined && { conflicts: wholeNumber(flags, 'conflicts', 1, 1_000_000)! }),
    ...(staleAfter !== undefined && { staleAfterMs: durationMs('stale-after', staleAfter, { zero: true }) }),
  }
}

function report(flags: FlagValues, io: Io, problems: readonly Problem[]): number {
  const critical = problems.filter(({ severity }) => severity === 'critical').length
  const warnings = problems.length - critical
  if (flags['json']) for (const problem of problems) io.out(`${jsonLine(problemJson(problem))}\n`)
  else io.out(`${[verdict(critical, warnings), ...problems.map(lineOfProblem)].join('\n')}\n`)
  if (critical > 0) return PLUGIN.critical
  return warnings > 0 ? PLUGIN.warning : EXIT.ok
}

function verdict(critical: number, warnings: number): string {
  if (critical + warnings === 0) return 'runledger OK: nothing is overdue, failed, stale or in doubt'
  return `runledger ${critical > 0 ? 'CRITICAL' : 'WARNING'}: ${critical} critical, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`
}

/** A bar would begin the plugin's performance data. */
function lineOfProblem({ severity, kind, task, message }: Problem): string {
  return `${severity.toUpperCase()} ${kind}${task === null ? '' : ` ${task}`}: ${message}`.replace(/\s*\n\s*/g, ' ').replaceAll('|', '¦')
}

function problemJson({ severity, kind, task, taskKey, since, message }: Problem) {
  return { severity, kind, task_name: task, task_key: taskKey, since, message }
}

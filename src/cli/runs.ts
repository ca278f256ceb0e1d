/** `runledger runs`: the newest runs, as a table or as JSON. */
import type { Run, Status } from '../index.ts'
import { durationMs } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import type { Colour } from './colour.ts'
import type { Command } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { oneOf, text, wholeNumber } from './flags.ts'
import { jsonLine } from './log.ts'
import { runJson } from './run-json.ts'
import { shortInstant, span, table, zonedInstant } from './table.ts'

const help = `
Usage: runledger runs [--task T] [--status S] [--since D] [--limit N] [--json]

Lists runs, the newest first. Instants are in the zone of the run's window, with UTC beside; UTC alone without one.

  --task T     only this task
  --status S   pending, processing, completed or failed
  --since D    only what was recorded in the last D, such as 24h
  --limit N    at most N (50)

Example: runledger runs --status failed --since 12h
`

export const runsCommand: Command = {
  name: 'runs',
  summary: 'list runs',
  help,
  options: { task: { type: 'string' }, status: { type: 'string' }, since: { type: 'string' }, limit: { type: 'string' } },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('runs', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))} (runledger show KEY shows one run)`)
    const since = text(flags, 'since')
    const filter = {
      task: text(flags, 'task'),
      status: oneOf<Status>(flags, 'status', ['pending', 'processing', 'completed', 'failed']),
      since: since === undefined ? undefined : new Date(Date.now() - durationMs('since', since)),
      limit: wholeNumber(flags, 'limit', 1, 100_000) ?? 50,
    }
    const runs = await withLedger(flags, io, (ledger) => ledger.runs(filter))
    if (flags['json']) for (const run of runs) io.out(`${jsonLine(runJson(run))}\n`)
    else io.out(runs.length === 0 ? 'no runs\n' : table(['KEY', 'STATUS', 'ATTEMPT', 'STARTED', 'TOOK', 'HOST', 'PID', 'NOTE'], runs.map(cells), undefined, (cell, column) => (column === 1 ? (COLOURS[cell] ?? null) : null)))
    return EXIT.ok
  },
}

const COLOURS: Readonly<Record<string, Colour>> = { failed: 'red', processing: 'yellow', completed: 'green' }

function cells(run: Run): string[] {
  return [run.taskKey, run.status, `${run.attempt}/${run.maxAttempts}`, zonedInstant(run.startedAt, run.windowZone), span(run.startedAt, run.finishedAt), run.host ?? '-', run.pid === null ? '-' : String(run.pid), note(run)]
}

/** What a person would ask next. */
function note(run: Run): string {
  if (run.leaseOver) return `its owner stopped renewing the lease; last heartbeat ${shortInstant(run.heartbeatAt)}`
  if (run.status === 'failed') return [run.failureReason, run.exitCode === null ? null : `exit ${run.exitCode}`, run.error?.split('\n')[0]].filter(Boolean).join(', ')
  if (run.status === 'pending') return run.due ? 'due: the next launch takes it up' : `due at ${shortInstant(run.availableAt)}`
  return run.launcher ?? ''
}

/** `runledger metrics`: the ledger in the text format of Prometheus, to stdout or into a file of the node exporter. */
import { randomBytes } from 'node:crypto'
import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { invalidOption } from '../model/errors.ts'
import { boundTasks } from '../model/measures.ts'
import type { Command } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { text } from './flags.ts'
import { exposition } from './metrics/exposition.ts'
import { familiesOf } from './metrics/families.ts'

/** More tasks than that are one series, so that task names made up by a program do not flood the time series database. */
const MOST_TASKS = 1000
/** No task can be called so. */
const OTHER = '(other)'

const help = `
Usage: runledger metrics [--out FILE]

Writes what a monitoring system scrapes, in the text format of Prometheus: runs by task and state, endings by reason,
durations, conflicts by reason, last success, next due, oldest pending, expired leases, effects in doubt. At most ${MOST_TASKS}
tasks, in the order of their names; the others together are task="${OTHER}".

  --out FILE   into FILE, which is replaced at once (a new file beside it, then renamed; mode 0644), for the textfile
               folder of the node exporter: its name must end in .prom there

What it costs: a few index probes a task, the runs that are not over, and the endings since it last counted; the first
time that is the whole history. Endings are counted a minute after they happened, once, and kept in task_totals, so that
pruning or a retry does not make a counter fall. Without the right to write there (a reader) it counts afresh, and they do.
What is pruned before this command has seen it is not counted.

Exit codes: 0 written; 64 usage; 69 the database is unavailable (FILE is left as it was); 74 FILE cannot be written; 78 schema.

Example: runledger metrics --out /var/lib/prometheus/node-exporter/runledger.prom
`

export const metricsCommand: Command = {
  name: 'metrics',
  summary: 'write metrics for Prometheus',
  help,
  options: { out: { type: 'string' } },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('metrics', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    const file = text(flags, 'out')
    if (file === '') throw invalidOption('out', 'must name a file')
    const measures = await withLedger(flags, io, (ledger) => ledger.tasks.measures())
    const metrics = exposition(familiesOf(boundTasks(measures, MOST_TASKS, OTHER)))
    if (file === undefined) {
      io.out(metrics)
      return EXIT.ok
    }
    const problem = replaceFile(file, metrics)
    if (problem !== null) io.err(`runledger: ${file} cannot be written: ${problem}\n`)
    return problem === null ? EXIT.ok : EXIT.cannotWrite
  },
}

/** A reader finds the old file or the new one, never a part. @returns what went wrong */
function replaceFile(file: string, contents: string): string | null {
  const part = `${file}.${randomBytes(6).toString('hex')}`
  try {
    const fd = openSync(part, 'wx', 0o644)
    try {
      fchmodSync(fd, 0o644) // whatever the umask: the exporter is another user
      writeFileSync(fd, contents)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(part, file)
    return null
  } catch (error) {
    removeIfThere(part)
    return error instanceof Error ? error.message : String(error)
  }
}

/** Whatever stood in the way of writing it may stand in the way of this too (a name that is too long). */
function removeIfThere(file: string): void {
  try {
    rmSync(file, { force: true })
  } catch {
    // What went wrong first is what counts.
  }
}

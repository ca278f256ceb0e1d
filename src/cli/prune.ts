/** `runledger prune`: takes old finished runs away, in short batches beside running work. */
import { constants } from 'node:os'
import type { PrunedTask } from '../index.ts'
import { invalidOption } from '../model/errors.ts'
import { MAX_BATCH } from '../model/retention.ts'
import type { Command, FlagValues } from './command.ts'
import { withLedger } from './database.ts'
import { onSignals } from './exec/signals.ts'
import { EXIT } from './exit.ts'
import { required, text, wholeNumber } from './flags.ts'
import { jsonLine } from './log.ts'
import { shortInstant, table } from './table.ts'

const help = `
Usage: runledger prune --older-than D [--task T] [--keep-failed] [--payloads-only] [--keyed] [--dry-run] [--batch N]
                       [--because TEXT] [--by NAME] [--json]

Takes runs away that ended more than D ago, with their attempts, conflicts and effects. A window that went never runs
again: launches of it are conflicts (pruned). Of each task the newest window, the newest completed one and all later
ones stay, and its newest completed run; fences go on growing. What else stays, whatever its age: runs that are pending
or processing, runs with an effect in doubt, effects with a business key, and runs under a --key of your own, since
nothing but their row keeps such a key from running again.

  --older-than D    such as 90d; at least 1h
  --task T          only this task
  --keep-failed     failed runs stay
  --payloads-only   no run goes, only what the old ones carry: payload and result of completed runs, the output of all
  --keyed           runs under a --key of your own go too: the same key may then run again
  --dry-run         counts what would go, and changes nothing
  --batch N         rows a transaction (500, at most ${MAX_BATCH})
  --because TEXT    why; it is recorded with who did it, when, from where and what went
  --by NAME         who does it (the user of this process; behind sudo, who called it)

Each batch is a transaction of its own, and it rests between them. SIGINT and SIGTERM end it after the batch that is
under way; started again, it goes on. Any number may run at once.

Exit codes: 0 done; 64 usage; 69 the database is unavailable; 78 schema; 128+n ended by signal n.

Example: runledger prune --older-than 90d --keep-failed
`

export const pruneCommand: Command = {
  name: 'prune',
  summary: 'take old finished runs away',
  help,
  options: {
    'older-than': { type: 'string' }, task: { type: 'string' }, 'keep-failed': { type: 'boolean' }, 'payloads-only': { type: 'boolean' }, keyed: { type: 'boolean' },
    'dry-run': { type: 'boolean' }, batch: { type: 'string' }, because: { type: 'string' }, by: { type: 'string' },
  },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('prune', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    const stop = new AbortController()
    let asked: NodeJS.Signals | null = null
    const options = { ...optionsOf(flags), signal: stop.signal }
    const end = onSignals((signal, order) => {
      if (order === 'forward') return
      if (order === 'kill') process.exit(128 + constants.signals[signal]) // The open transaction is rolled back.
      asked = signal
      stop.abort()
    })
    const pruned: PrunedTask[] = []
    await withLedger(flags, io, async (ledger) => {
      for await (const task of ledger.upkeep.prune(options)) {
        pruned.push(task)
        if (flags['json']) io.out(`${jsonLine(prunedJson(task, options.dryRun))}\n`)
      }
    })
    end()
    if (!flags['json']) io.out(told(pruned, options.dryRun))
    return asked === null ? EXIT.ok : 128 + constants.signals[asked as NodeJS.Signals]
  },
}

function optionsOf(flags: FlagValues) {
  const is = (name: string) => flags[name] === true
  const batch = wholeNumber(flags, 'batch', 1, MAX_BATCH)
  return {
    olderThan: required(flags, 'older-than'),
    task: text(flags, 'task'),
    keepFailed: is('keep-failed'),
    payloadsOnly: is('payloads-only'),
    keyed: is('keyed'),
    dryRun: is('dry-run'),
    ...(batch !== undefined && { batch }),
    because: text(flags, 'because'),
    by: text(flags, 'by'),
  }
}

function prunedJson({ task, runs, attempts, effects, refusals, payloads, prunedBefore, kept, interrupted }: PrunedTask, dryRun: boolean) {
  return { task_name: task, dry_run: dryRun, runs, attempts, effects, refusals, payloads, pruned_before: prunedBefore, kept_newest: kept.newest, kept_keyed: kept.keyed, kept_in_doubt: kept.inDoubt, interrupted }
}

function told(pruned: readonly PrunedTask[], dryRun: boolean): string {
  const worthTelling = pruned.filter(({ runs, refusals, payloads, kept }) => runs + refusals + payloads + kept.keyed + kept.inDoubt > 0)
  if (worthTelling.length === 0) return 'nothing is old enough to go\n'
  return table(['TASK', dryRun ? 'WOULD GO' : 'GONE', 'ATTEMPTS', 'EFFECTS', 'REFUSALS', 'PAYLOADS', 'NO WINDOW BEFORE', 'NOTE'], worthTelling.map(cells))
}

function cells({ task, runs, attempts, effects, refusals, payloads, prunedBefore, kept, interrupted }: PrunedTask): string[] {
  const notes = [
    kept.keyed > 0 ? `${kept.keyed} under a key of their own stay (--keyed)` : '',
    kept.inDoubt > 0 ? `${kept.inDoubt} with an effect in doubt stay (runledger effects)` : '',
    interrupted ? 'ended before it was through' : '',
  ]
  return [task, ...[runs, attempts, effects, refusals, payloads].map(String), shortInstant(prunedBefore), notes.filter(Boolean).join('; ')]
}

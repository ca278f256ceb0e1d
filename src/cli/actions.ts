/** `runledger actions`: what operators did, by whom, from where and why. */
import type { RecordedAction } from '../index.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { text, wholeNumber } from './flags.ts'
import { jsonLine } from './log.ts'
import { actionJson } from './run-json.ts'
import { shortInstant, table } from './table.ts'

const help = `
Usage: runledger actions [--task T] [--key KEY] [--limit N] [--json]

Lists what operators did (retry, cancel, release, pause, resume, tasks set, backfill, prune), the newest last: when, by
whom, from where and why. Refused actions are not among them: they changed nothing.

  --task T     only on this task and its runs
  --key KEY    only on this run
  --limit N    the newest N (50)

Example: runledger actions --task daily_news
`

export const actionsCommand: Command = {
  name: 'actions',
  summary: 'list what operators did, by whom and why',
  help,
  options: { task: { type: 'string' }, key: { type: 'string' }, limit: { type: 'string' } },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('actions', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    const filter = { task: text(flags, 'task'), taskKey: text(flags, 'key'), limit: wholeNumber(flags, 'limit', 1, 100_000) ?? 50 }
    const actions = await withLedger(flags, io, (ledger) => ledger.operator.actions(filter))
    if (flags['json']) for (const action of actions) io.out(`${jsonLine(actionJson(action))}\n`)
    else io.out(actions.length === 0 ? 'no actions\n' : table(['AT', 'ACTION', 'ON', 'BY', 'FROM', 'BECAUSE'], actions.map(cells)))
    return EXIT.ok
  },
}

function cells({ at, name, task, taskKey, by, because }: RecordedAction): string[] {
  return [shortInstant(at), name, taskKey ?? task ?? '-', by.user, `${by.host} (${by.launcher})`, because ?? '-']
}

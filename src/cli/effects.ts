/** `runledger effects`: what jobs did to the outside world, and what nobody knows. */
import type { EffectRecord } from '../index.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command } from './command.ts'
import { withLedger } from './database.ts'
import { effectJson } from './effect-json.ts'
import { EXIT } from './exit.ts'
import { text, wholeNumber } from './flags.ts'
import { jsonLine } from './log.ts'
import { shortInstant, table } from './table.ts'

const help = `
Usage: runledger effects [--in-doubt] [--task T] [--run KEY] [--limit N] [--json]

Lists effects, the newest first. Instants are UTC.

  --in-doubt   only those of which nobody knows whether they happened, the oldest first: ask the other side, then
               'runledger effect resolve KEY --done' or '--not-done'
  --task T     only of this task
  --run KEY    only of this run
  --limit N    at most N (50)

Example: runledger effects --in-doubt
`

export const effectsCommand: Command = {
  name: 'effects',
  summary: 'list effects, and those in doubt',
  help,
  options: { 'in-doubt': { type: 'boolean' }, task: { type: 'string' }, run: { type: 'string' }, limit: { type: 'string' } },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('effects', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    const filter = { inDoubt: flags['in-doubt'] === true, task: text(flags, 'task'), taskKey: text(flags, 'run'), limit: wholeNumber(flags, 'limit', 1, 100_000) ?? 50 }
    const effects = await withLedger(flags, io, (ledger) => ledger.effects.list(filter))
    if (flags['json']) for (const effect of effects) io.out(`${jsonLine(effectJson(effect))}\n`)
    else io.out(effects.length === 0 ? 'no effects\n' : table(['KEY', 'STATUS', 'CALLS', 'STARTED', 'HOST', 'PID', 'NOTE'], effects.map(cells)))
    return EXIT.ok
  },
}

function cells(effect: EffectRecord): string[] {
  const { effectKey, calls, startedAt, host, pid } = effect
  return [effectKey, statusOf(effect), String(calls), shortInstant(startedAt), host ?? '-', pid === null ? '-' : String(pid), note(effect)]
}

function statusOf({ status, live }: EffectRecord): string {
  return status === 'started' && !live ? 'in doubt' : status.replace('_', ' ')
}

function note({ status, live, problem, resolvedBy, resolvedAt, attempt, taskKey }: EffectRecord): string {
  if (resolvedBy !== null) return `says ${resolvedBy} at ${shortInstant(resolvedAt)}`
  if (problem !== null) return problem.split('\n')[0]!
  return status === 'started' ? `attempt ${attempt} of ${taskKey} ${live ? 'is at it' : 'ended before it could say'}` : ''
}

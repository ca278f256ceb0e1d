/** `runledger effect resolve KEY --done|--not-done`: the operator's word on an effect in doubt. */
import { hostname, userInfo } from 'node:os'
import { invalidOption } from '../../model/errors.ts'
import type { FlagValues, Invocation, Io } from '../command.ts'
import { withLedger } from '../database.ts'
import { effectJson } from '../effect-json.ts'
import { EXIT } from '../exit.ts'
import { text } from '../flags.ts'
import { jsonLine } from '../log.ts'

export async function resolve({ flags, words }: Invocation, io: Io): Promise<number> {
  const [key, ...more] = words.slice(1)
  if (key === undefined || more.length > 0) throw invalidOption('resolve', 'takes one key; runledger effects --in-doubt lists them')
  if ((flags['done'] === true) === (flags['not-done'] === true)) throw invalidOption('resolve', 'needs one of --done and --not-done')
  const by = text(flags, 'by') ?? whoever(io)
  const result = resultOf(flags)
  const record = await withLedger(flags, io, (ledger) => ledger.effects.resolve(key, { verdict: flags['done'] ? 'done' : 'not_done', by, result }))
  io.out(flags['json'] ? `${jsonLine(effectJson(record))}\n` : `${key} is ${record.status.replace('_', ' ')}, says ${by}\n`)
  return EXIT.ok
}

function resultOf(flags: FlagValues): unknown {
  const given = text(flags, 'result')
  if (given === undefined) return undefined
  try {
    return JSON.parse(given)
  } catch (error) {
    throw invalidOption('result', 'must be JSON; a text stands in double quotes', error)
  }
}

/** The person, not the root that sudo made of them. */
function whoever(io: Io): string {
  return `${io.env['SUDO_USER'] ?? userName()}@${hostname()}`
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? '?'}` // A uid without an entry, as in many containers.
  }
}

/** `runledger fence check|bump`: a guard for scripts, and the jump after a restored backup. */
import { invalidOption } from '../model/errors.ts'
import { CLAIM_FLAG, claimOf } from './claim/claim-of.ts'
import type { Command, FlagValues, Io } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { required, text } from './flags.ts'
import { jsonLine } from './log.ts'

const help = `
Usage: runledger fence check --resource R [--token N]
       runledger fence bump [--by N]

check lets a writer through to a resource if none with a greater fence was there before, and remembers its fence; the
same fence may pass again. It does not keep others out while you write: hold a lock around both (docs/fencing.md).

  --resource R   the name of what is protected, such as a file or an account
  --token N      the writer's fence; by default that of RUNLEDGER_CLAIM, --claim JSON or the job of runledger exec

bump is for after a restored backup, or a failover that lost its tail: fences that were handed out in the lost time
would be handed out again. It raises every counter, and what unknown scopes begin with, by N (1000000).

Exit codes: 0 may write; 77 the fence is behind: do not write; 64 usage; 69 the database is unavailable; 78 schema.

Example: runledger fence check --resource report.csv && mv report.csv.new report.csv
`

export const fenceCommand: Command = {
  name: 'fence',
  summary: "check a writer's fence, or jump all after a restore",
  help,
  options: { ...CLAIM_FLAG, resource: { type: 'string' }, token: { type: 'string' }, by: { type: 'string' } },
  async run({ flags, words }, io) {
    const [verb, ...more] = words
    if (more.length === 0 && verb === 'check') return check(flags, io)
    if (more.length === 0 && verb === 'bump') return bump(flags, io)
    throw invalidOption('fence', `takes check or bump, got ${JSON.stringify(words.join(' ').slice(0, 60))}`)
  },
}

async function check(flags: FlagValues, io: Io): Promise<number> {
  const resource = required(flags, 'resource')
  const token = text(flags, 'token') ?? claimOf(flags, io).fence
  await withLedger(flags, io, (ledger) => ledger.fences.check(resource, token))
  if (flags['json']) io.out(`${jsonLine({ resource, token: BigInt(token) })}\n`)
  return EXIT.ok
}

async function bump(flags: FlagValues, io: Io): Promise<number> {
  const above = await withLedger(flags, io, (ledger) => ledger.fences.bump(text(flags, 'by') ?? 1_000_000))
  io.out(flags['json'] ? `${jsonLine({ above })}\n` : `fences were raised; new scopes begin above ${above}\n`)
  return EXIT.ok
}

/** `runledger hold`: keeps the lease of a claim while another process lives; what `claim --hold` starts in the background. */
import { invalidOption } from '../model/errors.ts'
import { CLAIM_FLAG, claimOf } from './claim/claim-of.ts'
import { KEPT } from './claim/keeper.ts'
import type { Command } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { oneOf, required, wholeNumber } from './flags.ts'

const help = `
Usage: runledger hold --pid PID [--claim JSON] [--on-lost term|none]

Renews the lease of the claim (RUNLEDGER_CLAIM, or --claim) while process PID of this host lives, and ends when it is
gone or the claim is closed. Prints 'kept' once the lease was renewed. 'runledger claim --hold PID' starts it for you.

  --pid PID      the process that does the work
  --on-lost A    when the lease is lost while it lives, or an operator cancels the run: term (default) sends it SIGTERM,
                 none does nothing

Exit codes: 0 the process is gone or the claim was closed; 64 usage; 69 the database is unavailable; 75 the lease was lost.

Example: RUNLEDGER_CLAIM=$claim runledger hold --pid $$ &
`

export const holdCommand: Command = {
  name: 'hold',
  summary: 'keep the lease of a claim while a process lives',
  help,
  options: { ...CLAIM_FLAG, pid: { type: 'string' }, 'on-lost': { type: 'string' } },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('hold', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    required(flags, 'pid')
    const pid = wholeNumber(flags, 'pid', 2, 2 ** 31 - 1)!
    const onLost = oneOf(flags, 'on-lost', ['term', 'none']) ?? 'term'
    const ref = claimOf(flags, io)
    process.on('SIGHUP', () => {}) // The terminal of the script may close; the script says when it is over.
    const cancelled = () => {
      io.err(`runledger: an operator cancelled ${ref.taskKey} attempt ${ref.attempt}\n`)
      if (onLost === 'term') terminate(pid)
    }
    const end = await withLedger(flags, io, (ledger) => ledger.keep(ref, pid, { kept: () => io.out(KEPT), cancelled }))
    if (end !== 'lost') return EXIT.ok
    io.err(`runledger: the lease of ${ref.taskKey} attempt ${ref.attempt} is lost\n`)
    if (onLost === 'term') terminate(pid)
    return EXIT.leaseLost
  },
}

function terminate(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch {
    // It has ended this moment, or is another user's: its later writes are refused all the same.
  }
}

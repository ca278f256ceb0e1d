/** What a script says about the claim it holds: heartbeat, complete, fail, release. */
import type { Claim, ClaimRef } from '../../index.ts'
import { invalidOption } from '../../model/errors.ts'
import type { Command, FlagValues } from '../command.ts'
import { withLedger } from '../database.ts'
import { EXIT } from '../exit.ts'
import { text, wholeNumber } from '../flags.ts'
import { jsonLine } from '../log.ts'
import { releaseByHand } from '../operate.ts'
import { CLAIM_FLAG, claimOf } from './claim-of.ts'

const WHICH = `
The claim is RUNLEDGER_CLAIM, or --claim JSON: the line that runledger claim printed.

Exit codes: 0 it is recorded, and one line of JSON says so; 64 usage; 69 the database is unavailable; 75 the lease was
lost: somebody else may have the run, nothing was recorded, stop; 78 schema.
`

interface Verb {
  readonly name: string
  readonly summary: string
  readonly help: string
  readonly example: string
  readonly options?: Command['options']
  /** @returns what the line of JSON says beside who it was */
  speak(claim: Claim, flags: FlagValues, ref: ClaimRef): Promise<{ readonly status: string; readonly [field: string]: unknown }>
}

function command({ name, summary, help, example, options = {}, speak }: Verb): Command {
  return {
    name,
    summary,
    help: `${help}${WHICH}\nExample: ${example}\n`,
    options: { ...CLAIM_FLAG, ...options },
    async run({ flags, words }, io) {
      if (words.length > 0) throw invalidOption(name, `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
      const ref = claimOf(flags, io)
      const said = await withLedger(flags, io, (ledger) => speak(ledger.resume(ref), flags, ref))
      io.out(`${jsonLine({ ...said, task_key: ref.taskKey, attempt: ref.attempt, fence: ref.fence })}\n`)
      return EXIT.ok
    },
  }
}

export const heartbeatCommand = command({
  name: 'heartbeat',
  summary: 'renew the lease of a claim',
  example: 'RUNLEDGER_CLAIM=$claim runledger heartbeat || exit',
  help: `
Usage: runledger heartbeat [--claim JSON]

Renews the lease of a claim; call it at least every third of the lease, or let 'runledger claim --hold' do it.
Exits with 72 when an operator has cancelled the run: stop, then call 'runledger fail'.
`,
  async speak(claim, _, { leaseMs }) {
    await claim.heartbeat()
    return { status: 'renewed', lease_seconds: leaseMs / 1000 }
  },
})

export const completeCommand = command({
  name: 'complete',
  summary: 'record that a claimed run is done',
  example: 'RUNLEDGER_CLAIM=$claim runledger complete',
  help: `
Usage: runledger complete [--claim JSON]

Records that the run is done. It never runs again.
`,
  async speak(claim) {
    await claim.complete()
    return { status: 'completed' }
  },
})

export const failCommand = command({
  name: 'fail',
  summary: 'record that a claimed run failed',
  example: `RUNLEDGER_CLAIM=$claim runledger fail --error 'the feed answered 503'`,
  help: `
Usage: runledger fail [--error TEXT] [--exit-code N] [--final] [--claim JSON]

Records that this attempt failed. With attempts left (claim --max-attempts) the run is pending again after its backoff.

  --error TEXT     what went wrong
  --exit-code N    the exit code of the work, if it had one
  --final          another try would not help
`,
  options: { error: { type: 'string' }, 'exit-code': { type: 'string' }, final: { type: 'boolean' } },
  async speak(claim, flags) {
    const exitCode = wholeNumber(flags, 'exit-code', 0, 255) ?? null
    const { retryInMs, cancelled } = await claim.fail(text(flags, 'error') ?? 'failed', { reason: exitCode === null ? 'error' : 'exit', exitCode, final: flags['final'] === true })
    return { status: cancelled ? 'cancelled' : 'failed', retry_in_seconds: retryInMs === null ? null : retryInMs / 1000 }
  },
})

const releaseOwn = command({
  name: 'release',
  summary: 'give a claimed run back, or free one of a dead holder',
  example: `runledger release daily_news:2026-09-20-18:00 --force --because 'server-02 burned down'`,
  help: `
Usage: runledger release [--claim JSON]
       runledger release KEY [--force] [--because TEXT] [--by NAME] [--json]

Gives the run back unbegun: it is pending at once, and the attempt is not counted.

With a KEY it is an operator's word: closes the attempt of a holder that is gone, so that the run can be claimed again.
Where the holder's lease still runs and this host cannot prove its death, that takes --force; should it live after all,
its writes are refused, and it is told so. What was done, by whom and why is recorded.

  --force          you know that the holder is dead
  --because TEXT   why
  --by NAME        who does it (the user of this process; behind sudo, who called it)
`,
  options: { force: { type: 'boolean' }, because: { type: 'string' }, by: { type: 'string' } },
  async speak(claim) {
    await claim.release()
    return { status: 'released' }
  },
})

export const releaseCommand: Command = {
  ...releaseOwn,
  help: releaseOwn.help.replace('lost: somebody else', 'lost (with a KEY: 1 no such run, 73 refused): somebody else'),
  run: (invocation, io) => (invocation.words.length > 0 ? releaseByHand(invocation, io) : releaseOwn.run(invocation, io)),
}

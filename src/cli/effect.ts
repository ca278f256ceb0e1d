/** `runledger effect`: a command as an effect that is done at most once, and the operator's word on one in doubt. */
import { CLAIM_FLAG } from './claim/claim-of.ts'
import type { Command } from './command.ts'
import { perform } from './effect/perform.ts'
import { resolve } from './effect/resolve.ts'
import { invalidOption } from '../model/errors.ts'

const help = `
Usage: runledger effect --name N | --key K [--on-doubt fail|repeat|CMD] -- CMD [ARG…]
       runledger effect resolve KEY --done [--result JSON] | --not-done [--by WHO]

Runs CMD and records its output; when that was done before, prints the recorded output and runs nothing. CMD finds the
idempotency key, the same on every attempt, in RUNLEDGER_IDEMPOTENCY_KEY. Its output appears when it is recorded.

  --name N             unique within the run: of the job of runledger exec, or of RUNLEDGER_CLAIM (or --claim JSON)
  --key K              unique across runs and tasks; outside of a run it makes a run of its own, of --task T (effect)
  --on-doubt A         when an earlier attempt began it and nobody knows whether it happened:
                       fail (default) says so and exits 76; repeat runs CMD again, with the same key; any other word is
                       a shell command that asks the other side: exit 0 it happened, and its output is the result;
                       1 it did not, so CMD runs; anything else: it cannot say either
  --not-done-exit-code N[,N…]   with these, CMD says that certainly nothing happened (curl: 6,7); any other failure
                       leaves the effect in doubt

resolve records your word, your name and the time. --done: it happened, and is never run again (--result: what it would
have printed, as JSON); --not-done: it did not, and the next attempt runs it.

Exit codes: 0 done, now or before; CMD's own when it failed; 1 no such effect; 64 usage; 65 it is done, but its output
could not be recorded (more than 64 KiB); 69 the database is unavailable (CMD did not run); 73 somebody else is at it;
75 the lease is lost; 76 in doubt; 78 schema; 126/127 CMD cannot be run / was not found.

Example: runledger effect --key charge:order-42 -- ./charge.sh 42
`

const string = { type: 'string' } as const
const boolean = { type: 'boolean' } as const

export const effectCommand: Command = {
  name: 'effect',
  summary: 'run a command as an effect that is done at most once',
  help,
  options: { ...CLAIM_FLAG, name: string, key: string, task: string, 'on-doubt': string, 'not-done-exit-code': string, done: boolean, 'not-done': boolean, result: string, by: string },
  async run(invocation, io) {
    const [verb] = invocation.words
    if (verb === 'resolve') return resolve(invocation, io)
    if (verb !== undefined) throw invalidOption('effect', `does not know what to do with ${JSON.stringify(verb.slice(0, 40))}; the command stands after --`)
    return perform(invocation, io)
  },
}

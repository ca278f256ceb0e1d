/** `runledger effect … -- CMD`: a command as an effect of the run that the caller holds, or of a run of its own. */
import { isLedgerError, NotPerformed, type Claim, type EffectOptions, type EffectRecord, type Ledger, type Perform, type Reconciled } from '../../index.ts'
import { invalidOption } from '../../model/errors.ts'
import { findClaim } from '../claim/claim-of.ts'
import type { FlagValues, Invocation, Io } from '../command.ts'
import { withLedger } from '../database.ts'
import { findCommand } from '../exec/find-command.ts'
import { EXIT } from '../exit.ts'
import { text } from '../flags.ts'
import { bytesOf, resultOf, runCommand, TooLarge, type CommandEnd } from './run-command.ts'

/** The command ended with another exit code than 0: the effect may or may not have happened. */
class CommandFailed extends Error {
  readonly end: CommandEnd

  constructor(end: CommandEnd) {
    super(`the command exited with ${end.exitCode}`)
    this.end = end
  }
}

interface Plan {
  readonly name: string
  readonly options: EffectOptions<unknown>
  readonly perform: Perform<unknown>
  readonly task: string
}

/** @returns the exit code: the command's own when it failed, 0 when it is done, now or before */
export async function perform({ flags, rest }: Invocation, io: Io): Promise<number> {
  const [command, ...args] = rest
  if (command === undefined || command === '') throw invalidOption('effect', 'needs a command after --')
  const found = findCommand(command, io.env, process.cwd())
  if ('problem' in found) {
    io.err(`runledger: ${found.problem}\n`)
    return found.exitCode
  }
  const plan = planOf(flags, io, (env) => runCommand(found.path, command, args, env))
  try {
    const result = await withLedger(flags, io, (ledger) => inRun(ledger, flags, io, plan))
    process.stdout.write(bytesOf(result))
    return EXIT.ok
  } catch (error) {
    return failed(error, io)
  }
}

function planOf(flags: FlagValues, io: Io, run: (env: NodeJS.ProcessEnv) => Promise<CommandEnd>): Plan {
  const [name, key] = [text(flags, 'name'), text(flags, 'key')]
  if (name === undefined && key === undefined) throw invalidOption('effect', 'needs --name, or --key for one that is unique across runs')
  const notDone = exitCodes(flags)
  const withKey = (idempotencyKey: string) => ({ ...io.env, RUNLEDGER_IDEMPOTENCY_KEY: idempotencyKey })
  return {
    name: name ?? 'effect',
    task: text(flags, 'task') ?? 'effect',
    options: { ...(key !== undefined && { key }), onDoubt: onDoubtOf(text(flags, 'on-doubt') ?? 'fail', withKey) },
    async perform(idempotencyKey) {
      const end = await run(withKey(idempotencyKey))
      if (end.exitCode === 0) return resultOf(end)
      throw notDone.has(end.exitCode) ? new NotPerformed(new CommandFailed(end)) : new CommandFailed(end)
    },
  }
}

function exitCodes(flags: FlagValues): ReadonlySet<number> {
  const list = text(flags, 'not-done-exit-code')
  if (list === undefined) return new Set()
  if (!/^\d{1,3}(,\d{1,3})*$/.test(list)) throw invalidOption('not-done-exit-code', `must be exit codes with commas between them, got ${JSON.stringify(list.slice(0, 40))}`)
  return new Set(list.split(',').map(Number))
}

/** Whoever is asked says by the exit code: 0 it happened, and this was its output; 1 it did not; any other: cannot say. */
function onDoubtOf(word: string, withKey: (key: string) => NodeJS.ProcessEnv): NonNullable<EffectOptions<unknown>['onDoubt']> {
  if (word === 'fail' || word === 'repeat') return word
  return async ({ effectKey }: EffectRecord): Promise<Reconciled<unknown>> => {
    const end = await runCommand('/bin/sh', 'sh', ['-c', word], withKey(effectKey))
    if (end.exitCode === 0) return { done: true, result: resultOf(end) }
    return end.exitCode === 1 ? { done: false } : undefined
  }
}

/** Under the claim of the job or script that calls; without one, in a run that is claimed for this effect alone. */
async function inRun(ledger: Ledger, flags: FlagValues, io: Io, { name, perform, options, task }: Plan): Promise<unknown> {
  const ref = findClaim(flags, io)
  if (ref) return ledger.resume(ref).effect(name, perform, options)
  if (options.key === undefined) throw invalidOption('name', 'needs a run to belong to: call this from a job of runledger exec, after runledger claim, or give --key')
  const outcome = await ledger.run({ task, overlap: 'allow' }, (claim: Claim) => claim.effect(name, perform, options))
  if (outcome.status !== 'completed') throw invalidOption('task', `the run could not be claimed (${outcome.status === 'conflict' ? outcome.reason : outcome.status})`)
  return outcome.value
}

/** What the command wrote is passed on, whatever became of its record: nothing of it may be lost. */
function failed(error: unknown, io: Io): number {
  if (isLedgerError(error) && error.code === 'RESULT_NOT_RECORDABLE' && !(error.cause instanceof TooLarge)) process.stdout.write(bytesOf(error.cause))
  const inner = error instanceof NotPerformed ? error.cause : error
  if (!(inner instanceof CommandFailed)) throw error
  if (inner.end.passedOn === 0) process.stdout.write(inner.end.output)
  io.err(`runledger: ${inner.message}; the effect is ${inner === error ? 'in doubt' : 'recorded as not done'}\n`)
  return inner.end.exitCode
}

/** What an operator does by hand: cancel, retry and release a run, pause and resume a task. */
import type { ActionOptions, Ledger, Operation } from '../index.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command, FlagValues, Invocation, Io } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { text, wholeNumber } from './flags.ts'
import { jsonLine } from './log.ts'
import { runJson } from './run-json.ts'

const FLAGS_HELP = `
  --because TEXT   why; it is recorded with who did it, when and from where
  --by NAME        who does it (the user of this process; behind sudo, who called it)
`

const CODES_HELP = `
Exit codes: 0 done; 1 there is no such run; 64 usage; 69 the database is unavailable; 73 refused, with the reason on
stderr: nothing was changed or recorded; 78 schema.
`

const FLAGS = { because: { type: 'string' }, by: { type: 'string' } } as const

export const cancelCommand: Command = {
  name: 'cancel',
  summary: 'cancel a run, pending or processing',
  help: `
Usage: runledger cancel KEY [--because TEXT] [--by NAME] [--json]

Ends a pending run as cancelled at once. Of one that is processing, the holder's next heartbeat sees it: it stops the
job (SIGTERM, then SIGKILL), and the run ends as cancelled, without another attempt.
${FLAGS_HELP}${CODES_HELP}
Example: runledger cancel import:2026-09-20 --because 'wrong file'
`,
  options: FLAGS,
  run: (invocation, io) => onRun('cancel', invocation, io, (ledger, key, options) => ledger.operator.cancel(key, options)),
}

export const retryCommand: Command = {
  name: 'retry',
  summary: 'have a run that is over done again',
  help: `
Usage: runledger retry KEY [--attempts N] [--force] [--because TEXT] [--by NAME] [--json]

Makes a failed run pending again, under its own key and window; the next launch of its task, or a worker, runs it.

  --attempts N     how many attempts it may have more (1)
  --force          also one that is completed; effects that were done stay done
${FLAGS_HELP.trimStart()}${CODES_HELP}
Example: runledger retry daily_news:2026-09-20-18:00 --because 'the feed is back'
`,
  options: { ...FLAGS, attempts: { type: 'string' }, force: { type: 'boolean' } },
  run: (invocation, io) => {
    const attempts = wholeNumber(invocation.flags, 'attempts', 1, 1000) ?? 1
    const force = invocation.flags['force'] === true
    return onRun('retry', invocation, io, (ledger, key, options) => ledger.operator.retry(key, { ...options, attempts, force }))
  },
}

/** `runledger release KEY`; without a key it gives back a claim of the caller's own (see claim/closing.ts). */
export function releaseByHand(invocation: Invocation, io: Io): Promise<number> {
  const force = invocation.flags['force'] === true
  return onRun('release', invocation, io, (ledger, key, options) => ledger.operator.release(key, { ...options, force }))
}

export const pauseCommand: Command = {
  name: 'pause',
  summary: 'let no run of a task begin, on any host',
  help: `
Usage: runledger pause TASK [--because TEXT] [--by NAME]

From now on no run of the task begins, on any host; a launch is a conflict (reason paused), recorded like any other.
What is processing goes on. Windows that pass meanwhile are not run: runledger missing lists them.
${FLAGS_HELP}${CODES_HELP}
Example: runledger pause daily_news --because 'the feed is being moved'
`,
  options: FLAGS,
  run: (invocation, io) => onTask('pause', invocation, io, (ledger, task, options) => ledger.operator.pause(task, options)),
}

export const resumeCommand: Command = {
  name: 'resume',
  summary: 'let a paused task run again',
  help: `
Usage: runledger resume TASK [--because TEXT] [--by NAME]

Lets the runs of a paused task begin again, on all hosts.
${FLAGS_HELP}${CODES_HELP}
Example: runledger resume daily_news
`,
  options: FLAGS,
  run: (invocation, io) => onTask('resume', invocation, io, (ledger, task, options) => ledger.operator.resume(task, options)),
}

async function onRun(verb: string, { flags, words }: Invocation, io: Io, act: (ledger: Ledger, key: string, options: ActionOptions) => Promise<Operation>): Promise<number> {
  const key = onlyWord(verb, words, 'key, such as daily_news:2026-09-20-18:00')
  const outcome = await withLedger(flags, io, (ledger) => act(ledger, key, optionsOf(flags)))
  if (outcome.status === 'refused') {
    io.err(`runledger: ${verb}: ${outcome.problem}\n`)
    return EXIT.conflict
  }
  io.out(flags['json'] ? `${jsonLine({ action: verb, outcome: outcome.status, ...runJson(outcome.run) })}\n` : `${key}: ${SAID[outcome.status]}\n`)
  return EXIT.ok
}

const SAID = {
  cancelled: 'cancelled',
  requested: 'its holder was asked to stop, and will at its next heartbeat',
  reopened: 'pending again; the next launch of its task runs it',
  released: 'released from its holder',
} as const

async function onTask(verb: 'pause' | 'resume', { flags, words }: Invocation, io: Io, act: (ledger: Ledger, task: string, options: ActionOptions) => Promise<boolean>): Promise<number> {
  const task = onlyWord(verb, words, 'task')
  const changed = await withLedger(flags, io, (ledger) => act(ledger, task, optionsOf(flags)))
  const state = verb === 'pause' ? 'paused' : 'not paused'
  io.out(flags['json'] ? `${jsonLine({ action: verb, task_name: task, changed })}\n` : `${task} is ${state}${changed ? '' : ', as it was'}\n`)
  return EXIT.ok
}

function onlyWord(verb: string, words: readonly string[], what: string): string {
  const [word, ...more] = words
  if (word === undefined || word === '' || more.length > 0) throw invalidOption(verb, `takes one ${what}`)
  return word
}

function optionsOf(flags: FlagValues): ActionOptions {
  return { by: text(flags, 'by'), because: text(flags, 'because') }
}

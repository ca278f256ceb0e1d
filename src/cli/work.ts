/** `runledger work`: a worker whose handler is a command, which gets the payload on its stdin. */
import { openLedger, type Instance, type WorkerEvent } from '../index.ts'
import { durationMs } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import { leaseTerms } from '../model/lease.ts'
import type { Command, FlagValues } from './command.ts'
import { connectTimeout, databaseUrl } from './database.ts'
import { findCommand } from './exec/find-command.ts'
import { logLine } from './exec/log-line.ts'
import { onSignals } from './exec/signals.ts'
import { EXIT } from './exit.ts'
import { required, text, wholeNumber } from './flags.ts'
import { openLog, type LogFields } from './log.ts'
import { jobHandler } from './work/job-handler.ts'

const help = `
Usage: runledger work --task T [flags] -- CMD [ARG…]

Runs CMD for each run of the task that was enqueued, with its payload as JSON on stdin, until it is told to stop. Exit
code 0 completes the run; any other is a failed attempt, tried again after the backoff while attempts are left.

  --task T           the task's name
  --queue Q[,Q…]     the queues it stands in (default)
  --concurrency N    commands at work at the same time (1)
  --lease D          how long a claim outlives its last heartbeat (60s)
  --timeout D        end a command after D, where the run was enqueued without a timeout
  --kill-after D     between the first signal to a command and SIGKILL (5s)
  --poll D           how often a worker that hears nothing asks (1s)
  --stop-timeout D   how long commands may finish after SIGTERM (30s)

SIGTERM or SIGINT: claims no more, lets commands finish, ends the rest after --stop-timeout and gives their runs back,
the attempt not counted. A second one ends them at once. The command sees the same environment as with runledger exec.

Exit codes: 0 stopped when told to; 64 usage; 69 the database is unavailable at the start; 78 schema behind or ahead;
126/127 the command cannot be run / was not found.

Example: runledger work --task send_invoice --concurrency 4 -- php bin/send_invoice.php
`

const string = { type: 'string' } as const

export const workCommand: Command = {
  name: 'work',
  summary: 'run a command for each run of a task in a queue',
  help,
  options: { task: string, queue: string, concurrency: string, lease: string, timeout: string, 'kill-after': string, poll: string, 'stop-timeout': string },
  async run({ flags, words, rest }, io) {
    if (words.length > 0) throw invalidOption('work', `does not know what to do with ${JSON.stringify(words[0]!.slice(0, 40))}; the command stands after --`)
    const [command, ...args] = rest
    if (command === undefined || command === '') throw invalidOption('work', 'needs a command after --')
    const log = openLog(flags, io)
    const terms = termsOf(flags)
    const found = findCommand(command, io.env, process.cwd())
    if ('problem' in found) {
      io.err(`runledger: ${found.problem}\n`)
      return found.exitCode
    }
    // Its commands do not die with it at once (the watchdogs end them), so its own death proves nothing yet.
    const ledger = await openLedger(databaseUrl(flags, io.env), { connectTimeout: connectTimeout(flags), heartbeats: 'loop', owner: { pid: process.pid, provable: false } })
    try {
      const { promise: named, resolve: name } = Promise.withResolvers<Instance>()
      const logOf = (fields: LogFields) => void named.then((instance) => log(logLine(instance, { task: terms.task, ...fields })))
      const { handler, kill } = jobHandler({ io, log, job: { path: found.path, argv0: command, args }, leaseMs: terms.leaseMs, timeoutMs: terms.timeoutMs, graceMs: terms.graceMs }, named)
      const worker = await ledger.worker({ ...terms.worker, handlers: { [terms.task]: handler }, onEvent: (event) => logEvent(event, logOf) })
      name(worker.instance)
      const { promise: stopped, resolve } = Promise.withResolvers<void>()
      const deaf = onSignals((signal, order) => {
        if (order === 'forward') return
        if (order === 'kill') kill()
        else logOf({ status: 'stopping', reason: signal, at_work: worker.status().active })
        void worker.stop().then(resolve)
      })
      await stopped
      deaf()
      return EXIT.ok
    } finally {
      await ledger.close()
    }
  },
}

function termsOf(flags: FlagValues) {
  const queues = text(flags, 'queue')?.split(',')
  const graceMs = durationMs('kill-after', text(flags, 'kill-after') ?? '5s', { zero: true })
  const [lease, poll, stopTimeout, timeout] = [text(flags, 'lease'), text(flags, 'poll'), text(flags, 'stop-timeout'), text(flags, 'timeout')]
  return {
    task: required(flags, 'task'),
    leaseMs: leaseTerms(lease).leaseMs,
    timeoutMs: timeout === undefined ? null : durationMs('timeout', timeout),
    graceMs,
    worker: {
      grace: graceMs + 5_000, // Beyond what the commands have themselves.
      concurrency: wholeNumber(flags, 'concurrency', 1, 1000) ?? 1,
      ...(queues && { queues }),
      ...(lease !== undefined && { lease }),
      ...(poll !== undefined && { poll }),
      ...(stopTimeout !== undefined && { stopTimeout }),
    },
  }
}

/** What the handler tells itself is not said twice. */
function logEvent(event: WorkerEvent, log: (fields: LogFields) => void): void {
  switch (event.event) {
    case 'connected':
    case 'degraded':
    case 'stopped':
      return log({ status: event.event, error: event.problem })
    case 'heartbeat_missed':
      return log({ status: event.event, error: event.error instanceof Error ? event.error.message : String(event.error) })
    case 'reaped':
      return log({ status: event.event, runs: event.runs })
    case 'failed':
      return log({ key: event.run.taskKey, attempt: event.run.attempt, status: event.event, reason: event.reason, error: event.error instanceof Error ? event.error.message : String(event.error) })
    case 'lost':
      return log({ key: event.run.taskKey, attempt: event.run.attempt, status: 'lease_lost', reason: event.error instanceof Error ? event.error.message : String(event.error) })
    case 'released':
      return log({ key: event.run.taskKey, attempt: event.run.attempt, status: event.event })
    case 'started':
    case 'completed':
  }
}

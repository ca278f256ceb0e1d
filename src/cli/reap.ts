/** `runledger reap`: one pass over expired attempts, or a loop of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isLedgerError, type Ledger, type ReapedRun } from '../index.ts'
import { durationMs } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command } from './command.ts'
import { withLedger } from './database.ts'
import { onSignals } from './exec/signals.ts'
import { EXIT, lineOf } from './exit.ts'
import { text } from './flags.ts'
import { jsonLine, openLog, type Log } from './log.ts'

const help = `
Usage: runledger reap [--every D] [--db URL]

Closes every attempt whose lease has run out: the run is pending again, or failed as lost when that was its last
attempt. Touches nothing else; any number may run at once, on any host. Meant as a cron entry of its own:

  * * * * * runledger reap

  --every D   go on, with a pass every D, until told to stop

With --json one line a run goes to stdout; a line for the whole pass goes to the log on stderr.

Example: * * * * * runledger reap        (a line of a crontab)
`

export const reapCommand: Command = {
  name: 'reap',
  summary: 'close attempts whose owner is gone',
  help,
  options: { every: { type: 'string' } },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('reap', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    const log = openLog(flags, io)
    const every = text(flags, 'every')
    const everyMs = every === undefined ? null : durationMs('every', every)
    const print = (reaped: ReapedRun[]) => reaped.forEach((one) => flags['json'] && io.out(`${jsonLine(resultOf(one))}\n`))
    return withLedger(flags, io, async (ledger) => {
      if (everyMs === null) {
        print(await onePass(ledger, log))
        return EXIT.ok
      }
      await loop(ledger, log, everyMs, print, (error) => io.err(lineOf(error, io.env)))
      return EXIT.ok
    })
  },
}

async function onePass(ledger: Ledger, log: Log): Promise<ReapedRun[]> {
  const reaped = await ledger.reap()
  for (const one of reaped) log({ status: 'reaped', ...resultOf(one) })
  log({ status: 'reap_done', instance: ledger.instance.id, host: ledger.instance.host, reaped: reaped.length, failed: reaped.filter(({ now }) => now === 'failed').length })
  return reaped
}

/** Goes on through outages: what one pass could not reach, a later one will. */
async function loop(ledger: Ledger, log: Log, everyMs: number, print: (reaped: ReapedRun[]) => void, complain: (error: unknown) => void): Promise<void> {
  const stop = new AbortController()
  const end = onSignals((_, order) => order !== 'forward' && stop.abort())
  while (!stop.signal.aborted) {
    try {
      print(await onePass(ledger, log))
    } catch (error) {
      if (!isLedgerError(error) || error.code !== 'DATABASE_UNAVAILABLE') throw error
      complain(error)
    }
    // A timer beyond 2^31 - 1 ms fires at once; a day is long enough between two passes.
    await sleep(Math.min(everyMs, 86_400_000) * (0.9 + Math.random() / 5), undefined, { signal: stop.signal }).catch(() => {})
  }
  end()
}

function resultOf({ run, now }: ReapedRun) {
  return { task: run.task, key: run.taskKey, attempt: run.attempt, max_attempts: run.maxAttempts, now, host: run.host, pid: run.pid, owner: run.instanceId, started: run.startedAt, heartbeat: run.heartbeatAt }
}

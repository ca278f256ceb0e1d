/** `runledger claim`: claims a run for a script in any language, and prints the claim as JSON. */
import { claimJson, openLedger, type Conflict, type Ledger, type Queued } from '../index.ts'
import { invalidOption, LedgerError } from '../model/errors.ts'
import { startKeeper } from './claim/keeper.ts'
import type { Command, FlagValues, Io } from './command.ts'
import { connectTimeout, databaseUrl, tracing } from './database.ts'
import { EXIT } from './exit.ts'
import { oneOf, wholeNumber } from './flags.ts'
import { LAUNCH_FLAGS, launchOf } from './launch-flags.ts'
import { jsonLine } from './log.ts'

const help = `
Usage: runledger claim --task T [--cron E | --every P | --key L] [flags]

Claims the run and prints the claim as one line of JSON; put it into RUNLEDGER_CLAIM for the commands that go on with it:

  RUNLEDGER_CLAIM=$(runledger claim --task report --every 1d --hold $$) || exit
  export RUNLEDGER_CLAIM

  --hold PID           keep the lease in the background while that process lives; its death frees the run
  --on-lost A          with --hold, when the lease is lost all the same or the run is cancelled: term (default) sends
                       that process SIGTERM; none does nothing, and its later writes are refused
  --lease D            without --hold: how long the claim lasts without 'runledger heartbeat' (60s)
  --conflict-exit-code N   exit code when nothing was claimed (73)
  --task, --cron, --every, --key, --tz, --at, --early, --overlap, --wait-timeout, --heartbeat, --max-attempts, --backoff
                       as of runledger exec

Fields: status (claimed, conflict, queued), task, task_key, instance_id, attempt, max_attempts, fence, window_start,
window_end, window_zone, lease_seconds, idempotency_key; of a conflict: reason, holder. Then the script may call
heartbeat, complete, fail, release, effect and fence check.

Exit codes: 0 claimed; 73 a conflict, or queued: do not run; 64 usage; 69 the database is unavailable; 70 a bug, or the
lease could not be kept (the run was given back); 78 schema.

Example: runledger claim --task report --every 1d --hold $$
`

const string = { type: 'string' } as const

export const claimCommand: Command = {
  name: 'claim',
  summary: 'claim a run for a script in any language',
  help,
  options: { ...LAUNCH_FLAGS, hold: string, 'on-lost': string, 'conflict-exit-code': string },
  async run({ flags, words }, io) {
    const launch = launchOf(flags, new Date())
    if (words.length > 0) throw invalidOption('claim', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    const hold = wholeNumber(flags, 'hold', 2, 2 ** 31 - 1)
    const onLost = oneOf(flags, 'on-lost', ['term', 'none']) ?? 'term'
    const conflictExitCode = wholeNumber(flags, 'conflict-exit-code', 0, 255) ?? EXIT.conflict
    // We end at once, so the claim is made in the name of the script that called us.
    const owner = { pid: hold ?? process.ppid, provable: hold !== undefined }
    const ledger = await openLedger(databaseUrl(flags, io.env), { connectTimeout: connectTimeout(flags), heartbeats: 'loop', owner, ...tracing(io.env) })
    try {
      if (hold !== undefined && ledger.instance.processIdentity === null) throw invalidOption('hold', `there is no process ${hold} here (or no /proc to tell)`)
      const outcome = await ledger.claim(launch)
      if (outcome.status !== 'claimed') {
        io.out(`${jsonLine(refusalJson(outcome))}\n`)
        return conflictExitCode
      }
      const ref = outcome.handOver()
      if (hold !== undefined) await keep(ledger, ref, hold, flags, io, onLost)
      io.out(`${jsonLine(claimJson(ref))}\n`)
      return EXIT.ok
    } finally {
      await ledger.close()
    }
  },
}

/** A claim that nobody keeps is given back: better not run than run without a lease. */
async function keep(ledger: Ledger, ref: Parameters<typeof startKeeper>[0], pid: number, flags: FlagValues, io: Io, onLost: string): Promise<void> {
  const problem = await startKeeper(ref, pid, databaseUrl(flags, io.env), onLost)
  if (problem === null) return
  await ledger.resume(ref).release()
  throw new LedgerError('INTERNAL', `${ref.taskKey} was claimed and given back: ${problem}`, { taskKey: ref.taskKey })
}

function refusalJson(outcome: Conflict | Queued) {
  if (outcome.status === 'queued') return { status: 'queued', task_key: outcome.taskKey }
  const { taskKey, reason, holder, dueAt } = outcome
  return {
    status: 'conflict', task_key: taskKey, reason, due_at: dueAt,
    holder: holder && { task_key: holder.taskKey, instance_id: holder.instanceId, host: holder.host, pid: holder.pid, launcher: holder.launcher, attempt: holder.attempt, since: holder.since, heartbeat_at: holder.heartbeatAt },
  }
}

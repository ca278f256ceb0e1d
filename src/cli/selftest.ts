/** `runledger selftest`: races, crashes and freezes against your own database, in a place of its own that is removed afterwards. */
import { makeScratchLedger } from '../index.ts'
import { durationMs } from '../model/duration.ts'
import { invalidOption } from '../model/errors.ts'
import { percentile, type Figures } from '../proof/figures.ts'
import { PROMISES } from '../proof/promises.ts'
import { selfTest, type SelfTest } from '../proof/selftest.ts'
import { SPEC_VARIABLE, type WorkerSpec } from '../proof/worker-spec.ts'
import { work } from '../proof/worker.ts'
import type { Command, Io } from './command.ts'
import { connectTimeout, databaseUrl } from './database.ts'
import { onSignals } from './exec/signals.ts'
import { EXIT } from './exit.ts'
import { wholeNumber } from './flags.ts'
import { jsonLine, openLog } from './log.ts'
import { table } from './table.ts'

const help = `
Usage: runledger selftest [--seconds N] [--seed N] [--db URL] [--json]

Starts processes of its own that race for the same runs, kills and freezes them, and then decides from what each of them
did and saw, and from the tables, whether every promise was kept. It works in a schema of its own on PostgreSQL, a
database of its own on MySQL and MariaDB, a file of its own beside SQLite's; where this user may make none, in tables of
its own (table_prefix) in the database that the URL names. All of it is removed at the end, also after Ctrl-C. Your own
ledger is not touched; the load on the server is that of five busy clients.

  --seconds N   go on for about so long (60)
  --seed N      the same choices again (random; it stands in the log)

Exit codes: 0 every promise was kept, 1 some were broken: please report what it says; 69 database unavailable.

Example: runledger selftest --db postgres://app@db.example/app
`

export const selftestCommand: Command = {
  name: 'selftest',
  summary: 'check the promises on your own database, under crashes',
  help,
  options: { seconds: { type: 'string' }, seed: { type: 'string' } },
  async run({ flags, words }, io) {
    if (words.length > 0) throw invalidOption('selftest', `takes no word, got ${JSON.stringify(words[0]!.slice(0, 40))}`)
    const url = databaseUrl(flags, io.env)
    const spec = io.env[SPEC_VARIABLE]
    if (spec !== undefined) return workerOf(spec, url)
    const log = openLog(flags, io)
    const seconds = wholeNumber(flags, 'seconds', 1, 86_400) ?? 60
    const seed = wholeNumber(flags, 'seed', 0, 2 ** 31 - 1) ?? Math.floor(Math.random() * 2 ** 31)
    const scratch = await makeScratchLedger(url, durationMs('connect-timeout', connectTimeout(flags), { zero: true }))
    const stop = new AbortController()
    const end = onSignals((_, order) => order !== 'forward' && stop.abort())
    try {
      log({ status: 'selftest', place: scratch.name, seconds, seed })
      const result = await selfTest({ url: scratch.url, command: [process.execPath, process.argv[1]!, 'selftest'], seconds, seed, signal: stop.signal, onRound: (round) => log({ status: 'round', ...round }) })
      print(result, flags['json'] === true, io)
      return result.verdicts.every(({ broken }) => broken.length === 0) ? EXIT.ok : EXIT.broken
    } catch (error) {
      if (!stop.signal.aborted) throw error
      return EXIT.interrupted
    } finally {
      await scratch.remove()
      end()
    }
  },
}

async function workerOf(spec: string, url: string): Promise<number> {
  await work(JSON.parse(spec) as WorkerSpec, url)
  return EXIT.ok
}

const SHOWN = 10

function print({ verdicts, figures, faults }: SelfTest, json: boolean, io: Io): void {
  if (json) {
    for (const { promise, looked, broken } of verdicts) io.out(`${jsonLine({ promise, text: PROMISES[promise], kept: broken.length === 0, looked, broken })}\n`)
    return io.out(`${jsonLine({ ...namesOf(figures), faults })}\n`)
  }
  io.out(table(['VERDICT', 'LOOKED', 'PROMISE'], verdicts.map(({ promise, looked, broken }) => [broken.length === 0 ? 'kept' : `BROKEN ${broken.length}`, String(looked), PROMISES[promise]])))
  for (const { promise, broken } of verdicts) for (const text of broken.slice(0, SHOWN)) io.out(`${promise}: ${text}\n`)
  io.out(`\n${Object.entries({ ...namesOf(figures), faults }).map(([name, value]) => `${name}=${value ?? '-'}`).join(' ')}\n`)
}

function namesOf({ recoveryMs, ...figures }: Figures) {
  const part = (of: number) => (recoveryMs.length === 0 ? null : Math.round(percentile(recoveryMs, of)))
  return {
    runs: figures.runs, claims: figures.claims, conflicts: figures.conflicts, starts: figures.starts, repeated: figures.repeated, caught_by_effect: figures.caughtByEffect,
    caught_by_fence: figures.caughtByFence, late_writes_refused: figures.refused, next_attempt_p50_ms: part(0.5), next_attempt_p95_ms: part(0.95),
  }
}

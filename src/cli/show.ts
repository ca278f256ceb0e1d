/** `runledger show KEY`: one run, and everything that happened to its key in order. */
import type { HistoryLine, RecordedAction, Run } from '../index.ts'
import { invalidOption } from '../model/errors.ts'
import type { Command } from './command.ts'
import { withLedger } from './database.ts'
import { EXIT } from './exit.ts'
import { jsonLine } from './log.ts'
import { actionJson, historyJson, runJson } from './run-json.ts'
import { span, zonedInstant } from './table.ts'

const help = `
Usage: runledger show KEY [--json]

Shows the run with this key: its state, every attempt, every launch that lost and what operators did, in order, with who
and where, and the end of its output. Exits 1 when nothing is recorded under the key. With --json the run comes first,
then a line an entry (kind history or action).

Example: runledger show daily_news:2026-09-20-18:00
`

export const showCommand: Command = {
  name: 'show',
  summary: 'show one run with all its attempts and conflicts',
  help,
  options: {},
  async run({ flags, words }, io) {
    const [key, ...more] = words
    if (key === undefined || more.length > 0) throw invalidOption('show', 'takes one key, such as daily_news:2026-09-20-18:00')
    const { run, history, actions } = await withLedger(flags, io, async (ledger) => ({ ...(await ledger.show(key)), actions: await ledger.operator.actions({ taskKey: key }) }))
    if (flags['json']) {
      if (run) io.out(`${jsonLine({ kind: 'run', ...runJson(run) })}\n`)
      for (const line of history) io.out(`${jsonLine({ kind: 'history', ...historyJson(line) })}\n`)
      for (const action of actions) io.out(`${jsonLine({ kind: 'action', ...actionJson(action) })}\n`)
      return EXIT.ok
    }
    io.out(`${[...headOf(key, run), '', ...inOrder(history, actions, run?.windowZone ?? null), ...tailOf(run, history)].join('\n')}\n`)
    return EXIT.ok
  },
}

function headOf(key: string, run: Run | null): string[] {
  if (!run) return [`${key}  never ran; these launches lost:`]
  const window = run.windowStart ? `window ${zonedInstant(run.windowStart, run.windowZone)} to ${zonedInstant(run.windowEnd, run.windowZone)} (${run.windowZone})` : 'no window'
  const lease = run.leaseOver ? ', but its lease has run out' : run.status === 'processing' && run.cancelRequestedAt ? ', and asked to stop' : ''
  return [`${key}  ${run.status}${lease}`, `${window}; attempt ${run.attempt} of at most ${run.maxAttempts}; fence ${run.fence}`]
}

/** By when each ended; what has not ended comes last. */
function inOrder(history: readonly HistoryLine[], actions: readonly RecordedAction[], zone: string | null): string[] {
  const lines = [...history.map((line) => ({ at: line.endedAt?.getTime() ?? Infinity, text: lineOf(line, zone) })), ...actions.map((action) => ({ at: action.at.getTime(), text: actionLine(action, zone) }))]
  return lines.toSorted((a, b) => a.at - b.at).map(({ text }) => text)
}

function actionLine({ at, name, by, because }: RecordedAction, zone: string | null): string {
  return `${zonedInstant(at, zone)}  ${name.padEnd(10)}  by ${by.user} from ${by.host} pid ${by.pid} (${by.launcher})${because === null ? '' : `: ${because}`}`
}

function lineOf(line: HistoryLine, zone: string | null): string {
  const at = (date: Date | null) => zonedInstant(date, zone)
  const who = `${line.host} pid ${line.pid} (${line.launcher})`
  if (line.outcome === 'conflict') {
    const holder = line.heldByInstance === null ? '' : `, held by ${line.heldByKey === line.taskKey ? 'attempt' : line.heldByKey} of ${line.heldByHost} pid ${line.heldByPid} since ${at(line.heldSince)}`
    return `${at(line.endedAt)}  conflict    ${line.reason}: ${who} was refused${holder}`
  }
  const took = line.endedAt ? ` after ${span(line.startedAt, line.endedAt)}` : `, last heartbeat ${at(line.heartbeatAt)}`
  const why = [line.reason === line.outcome ? null : line.reason, line.exitCode === null ? null : `exit ${line.exitCode}`].filter(Boolean).join(', ')
  return `${at(line.startedAt)}  attempt ${line.attempt}   ${line.outcome}${why ? ` (${why})` : ''}${took}, by ${who}, fence ${line.fence}`
}

function tailOf(run: Run | null, history: readonly HistoryLine[]): string[] {
  const last = history.findLast((line) => line.outputTail !== null)
  const error = run?.error ?? last?.error
  const tail = run?.outputTail ?? last?.outputTail
  return [...(error ? ['', `error: ${error}`] : []), ...(tail ? ['', 'the end of its output:', ...tail.trimEnd().split('\n').map((text) => `  ${text}`)] : [])]
}

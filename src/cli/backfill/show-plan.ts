/** `runledger backfill --dry-run`: each window of the span, and what would be done with it. */
import type { BackfillWindow } from '../../index.ts'
import type { FlagValues, Io } from '../command.ts'
import { withLedger } from '../database.ts'
import { EXIT } from '../exit.ts'
import { jsonLine } from '../log.ts'
import { shortInstant, table } from '../table.ts'
import type { FillPlan } from './fill.ts'

const WORDS = { run: 'run', reopen: 'run again', leave: 'leave' } as const

export async function showPlan({ span, newestFirst }: Pick<FillPlan, 'span' | 'newestFirst'>, flags: FlagValues, io: Io): Promise<number> {
  const planned = await withLedger(flags, io, (ledger) => ledger.tasks.backfill(span))
  const windows = newestFirst ? planned.toReversed() : planned
  if (flags['json']) for (const window of windows) io.out(`${jsonLine(windowJson(window))}\n`)
  else io.out(windows.length === 0 ? 'no window begins in that span\n' : table(['KEY', 'WINDOW', 'STATUS', 'WOULD'], windows.map(cells)))
  return EXIT.ok
}

function cells({ taskKey, windowStart, run, action }: BackfillWindow): string[] {
  return [taskKey, shortInstant(windowStart), run?.status ?? 'missing', WORDS[action]]
}

function windowJson({ task, taskKey, windowStart, windowEnd, windowZone, run, action }: BackfillWindow) {
  return { task_name: task, task_key: taskKey, window_start: windowStart, window_end: windowEnd, window_zone: windowZone, status: run?.status ?? null, action }
}

/** Why nothing is recorded under a key. */
import type { AbsentReasons } from '../../index.ts'
import { shortInstant, span } from '../table.ts'
import { aboutPause, advice, refusals, seenLaunchers } from './sentences.ts'

export function tellAbsent({ taskKey, task, window, schedule, paused, conflicts, now }: AbsentReasons): string[] {
  return [
    `${taskKey} never ran: no run is recorded under this key.`,
    ...(schedule ? aboutWindow(window, `${schedule.schedule.source} (${schedule.schedule.zone})`, now) : []),
    ...(paused ? [aboutPause(paused)] : []),
    ...(schedule ? seenLaunchers(schedule.launchers) : []),
    ...refusals(conflicts),
    ...advice([
      ...(window && schedule && window.start <= now ? [[`runledger exec --task ${task} --${schedule.schedule.kind} '${schedule.schedule.source}' --tz ${window.zone} --at ${window.start.toISOString()} -- CMD`, 'run it now'] as const] : []),
      [`runledger missing --task ${task}`, 'the windows that should have run'],
      [`runledger why ${task}`, 'how the task stands'],
    ]),
  ]
}

function aboutWindow(window: AbsentReasons['window'], source: string, now: Date): string[] {
  if (!window) return [`The task runs by ${source}, which has no such window: is the key right?`]
  if (window.start > now) return [`By ${source} its window begins at ${shortInstant(window.start)}, ${span(now, window.start)} from now.`]
  return [`By ${source} its window began at ${shortInstant(window.start)}, ${span(window.start, now)} ago: it was not launched, or its launch did not reach this ledger.`]
}

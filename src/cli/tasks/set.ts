/** `runledger tasks set`: an operator's word on the terms of a task. */
import { type OverlapPolicy, type TaskTerms } from '../../index.ts'
import { durationMs } from '../../model/duration.ts'
import { invalidOption } from '../../model/errors.ts'
import { checkTaskName } from '../../model/names.ts'
import { CATCH_UPS, checkTerms, MAX_CATCH_UP_COUNT } from '../../model/task.ts'
import type { FlagValues, Io } from '../command.ts'
import { withLedger } from '../database.ts'
import { EXIT } from '../exit.ts'
import { instant, oneOf, required, text, wholeNumber } from '../flags.ts'
import { scheduleOf } from '../launch-flags.ts'
import { jsonLine } from '../log.ts'
import { taskJson } from './task-json.ts'

export async function setTerms(flags: FlagValues, io: Io): Promise<number> {
  const name = required(flags, 'task')
  if (flags['launchers']) throw invalidOption('launchers', "does not go with 'set'")
  checkTaskName(name)
  const terms = checkTerms(termsOf(flags))
  const task = await withLedger(flags, io, (ledger) => ledger.tasks.set(name, terms, text(flags, 'because')))
  const schedule = task.schedule === null ? 'no schedule' : `${task.schedule} in ${task.zone}`
  io.out(flags['json'] ? `${jsonLine(taskJson(task))}\n` : `${task.name}: ${schedule}, catch-up ${task.catchUp}\n`)
  return EXIT.ok
}

function termsOf(flags: FlagValues): TaskTerms {
  const duration = (name: string, zero = false) => (text(flags, name) === undefined ? undefined : durationMs(name, text(flags, name)!, { zero }))
  const asLaunched = flags['as-launched'] === true
  if (asLaunched && flags['overlap'] !== undefined) throw invalidOption('overlap', 'cannot stand beside --as-launched')
  const terms: { [K in keyof TaskTerms]?: TaskTerms[K] | undefined } = {
    schedule: wantedSchedule(flags),
    overlap: asLaunched ? 'launched' : oneOf<OverlapPolicy>(flags, 'overlap', ['skip', 'wait', 'queue', 'allow']),
    graceMs: duration('grace', true),
    catchUp: oneOf(flags, 'catch-up', CATCH_UPS),
    catchUpMaxAgeMs: duration('catch-up-max-age'),
    catchUpMaxCount: wholeNumber(flags, 'catch-up-max-count', 1, MAX_CATCH_UP_COUNT),
    since: instant(flags, 'since'),
  }
  return Object.fromEntries(Object.entries(terms).filter(([, value]) => value !== undefined)) as TaskTerms
}

function wantedSchedule(flags: FlagValues): TaskTerms['schedule'] {
  const given = ['cron', 'every', 'no-schedule', 'as-launched'].filter((name) => flags[name] !== undefined)
  if (given.length > 1) throw invalidOption(given[1]!, `cannot stand beside --${given[0]}`)
  if (flags['no-schedule'] === true) return null
  if (flags['as-launched'] === true) return 'launched'
  return scheduleOf(flags)
}

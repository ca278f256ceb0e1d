/** The flags that say which run a launch wants and on what terms; `exec` and `claim` share them. */
import { cron, every, type Launch, type OverlapPolicy } from '../index.ts'
import { invalidOption } from '../model/errors.ts'
import type { FlagValues } from './command.ts'
import { instant, oneOf, required, text, wholeNumber } from './flags.ts'

const string = { type: 'string' } as const

export const LAUNCH_FLAGS = {
  task: string, cron: string, every: string, key: string, tz: string, at: string, early: string, overlap: string, 'wait-timeout': string,
  lease: string, heartbeat: string, 'max-attempts': string, backoff: string,
} as const

/** @param startedAt the start of this process, which names the window unless --at does @throws INVALID_OPTION */
export function launchOf(flags: FlagValues, startedAt: Date): Launch {
  const optional = <T>(name: string, value: T | undefined) => (value === undefined ? {} : { [name]: value })
  return {
    task: required(flags, 'task'),
    window: scheduleOf(flags),
    key: text(flags, 'key'),
    at: instant(flags, 'at') ?? startedAt,
    ...optional('early', text(flags, 'early')),
    ...optional('overlap', oneOf<OverlapPolicy>(flags, 'overlap', ['skip', 'wait', 'queue', 'allow'])),
    ...optional('waitTimeout', text(flags, 'wait-timeout')),
    ...optional('lease', text(flags, 'lease')),
    ...optional('heartbeat', text(flags, 'heartbeat')),
    ...optional('maxAttempts', wholeNumber(flags, 'max-attempts', 1, 1000)),
    ...optional('backoff', text(flags, 'backoff')),
  }
}

export function scheduleOf(flags: FlagValues) {
  const given = ['cron', 'every', 'key'].filter((name) => flags[name] !== undefined)
  if (given.length > 1) throw invalidOption(given[1]!, `cannot stand beside --${given[0]}`)
  const [expression, period, zone] = [text(flags, 'cron'), text(flags, 'every'), text(flags, 'tz')]
  if (zone !== undefined && expression === undefined && period === undefined) throw invalidOption('tz', 'needs --cron or --every')
  if (expression !== undefined) return cron(expression, zone)
  return period === undefined ? undefined : every(period, zone)
}

/** Why a schedule has the windows it has: the rules in force and the clock changes they meet, for a person to check. */
import type { ClockChange } from './clock-change.ts'
import { clockChanges } from './clock-change.ts'
import type { CronDays } from './cron-day.ts'
import { explainChange } from './explain-change.ts'
import type { Schedule } from './schedule.ts'

/** More clock changes than this are not written out. */
const MOST_CHANGES = 12

/** One statement a line; the clock changes are those in `[from, to]`. */
export function explain(schedule: Schedule, from: Date, to: Date): string[] {
  const days = schedule.kind === 'cron' ? explainDays(schedule.expression.days) : []
  return [explainRule(schedule), ...days, ...explainChanges(schedule, from, to)]
}

function explainRule(schedule: Schedule): string {
  const { beat } = schedule
  if (beat.by === 'elapsed') return `elapsed time: windows are ${schedule.source} long, counted from 1970-01-01T00:00Z; the zone only names them`
  switch (beat.rule) {
    case 'calendar':
      return 'calendar: a window opens with the first instant of its day, ISO week (Monday), month or year in the zone; a midnight shown twice opens one window, the first time'
    case 'fixed':
      return 'fixed time (neither the minute nor the hour field begins with *): a time the clocks skip opens one window at the first instant after the jump, unless that is longer than 3 h; a time shown twice opens one window, the first time'
    case 'interval':
      return 'interval (the minute or the hour field begins with *): a time the clocks skip opens no window; a time shown twice opens two'
  }
}

function explainDays({ rule, dayOfMonth, dayOfWeek }: CronDays): string[] {
  const fields = [`day-of-month ${dayOfMonth}`, `day-of-week ${dayOfWeek}`] as const
  const restricted = fields.filter((field) => !/ [*?]$/.test(field))
  if (restricted.length === 0) return []
  if (restricted.length === 1) return [`days: those of ${restricted[0]}`]
  if (rule === 'either') return [`days: ${fields.join(' OR ')}, since both fields are restricted`]
  return [`days: ${fields.join(' AND ')}, since one begins with * (a stepped star such as */2 counts as a star)`]
}

function explainChanges(schedule: Schedule, from: Date, to: Date): string[] {
  const changes: ClockChange[] = []
  for (const change of clockChanges(schedule.zone, from.getTime() - 1, to.getTime())) {
    if (changes.push(change) > MOST_CHANGES) break
  }
  if (changes.length === 0) return [`clocks: ${schedule.zone} does not change them from ${from.toISOString()} to ${to.toISOString()}`]
  const lines = changes.slice(0, MOST_CHANGES).map((change) => `clocks: ${explainChange(schedule, change)}`)
  return changes.length > MOST_CHANGES ? [...lines, 'clocks: … and more; ask for a shorter span to see them'] : lines
}

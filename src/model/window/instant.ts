/** Instants as people write them: ISO 8601 with `Z` or an offset, never a bare local time. */
import { invalidOption } from '../errors.ts'
import { DAY_MS, FIRST_READING, HOUR_MS, LAST_READING, MINUTE_MS, SECOND_MS, daysInMonth, midnightOf } from './wall-clock.ts'

const PATTERN = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?$/i

/**
 * `2026-09-20T10:00Z`, `2026-09-20T18:00:30.250+08:00`; finer fractions are cut to milliseconds, never rounded.
 * @throws INVALID_OPTION naming `option`, also for a date that does not exist: Date.parse takes 30 February for 2 March.
 */
export function parseInstant(option: string, text: string): Date {
  const quoted = JSON.stringify(text.slice(0, 40))
  const match = PATTERN.exec(text)
  if (!match) throw invalidOption(option, `must be an instant such as 2026-09-20T10:00:00Z or 2026-09-20T18:00+08:00, got ${quoted}`)
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((digits) => Number(digits ?? 0)) as [number, number, number, number, number, number]
  if (match[8] === undefined) throw invalidOption(option, `${quoted} is a local time, which names no instant; add Z or an offset such as +08:00`)
  const offset = parseOffset(match[8])
  const exists = month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month) && hour < 24 && minute < 60 && second < 60
  const milliseconds = Number((match[7] ?? '').padEnd(3, '0').slice(0, 3))
  const at = midnightOf(year, month, day) + hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS + milliseconds - offset
  if (exists && Math.abs(offset) < DAY_MS && at >= FIRST_READING && at <= LAST_READING) return new Date(at)
  throw invalidOption(option, `no such date and time: ${quoted}`)
}

/** Milliseconds; a day, which no offset reaches, when the minutes are not minutes. */
function parseOffset(text: string): number {
  if (/^z$/i.test(text)) return 0
  const [hours, minutes] = [Number(text.slice(1, 3)), Number(text.slice(-2))]
  if (minutes >= 60) return DAY_MS
  return (text.startsWith('-') ? -1 : 1) * (hours * HOUR_MS + minutes * MINUTE_MS)
}

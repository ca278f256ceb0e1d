/** Durations as people write them: `'90s'`, `'15m'`, `'1.5h'`, or a number of milliseconds. */
import { invalidOption } from './errors.ts'

/** `'250ms'`, `'90s'`, `'15m'`, `'2h'`, `'30d'`, `'1w'`, or milliseconds as a number. */
export type Duration = string | number

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/

/** Ten years: beyond it a duration is a slip of the keyboard, not a wish. */
export const MAX_DURATION_MS = 3650 * 86_400_000

/**
 * Milliseconds of a duration; whole, positive (or zero where `zero` is allowed) and at most ten years.
 * @throws INVALID_OPTION naming `option`. A bare number in text (`'5'`) is refused: five of what?
 */
export function durationMs(option: string, value: Duration, { zero = false } = {}): number {
  const ms = Math.round(typeof value === 'number' ? value : parse(option, value))
  if (!Number.isFinite(ms) || ms < 0 || (ms === 0 && !zero)) throw invalidOption(option, `must be ${zero ? 'zero or more' : 'more than zero'}, got ${String(value)}`)
  if (ms > MAX_DURATION_MS) throw invalidOption(option, `must be at most ten years, got ${String(value)}`)
  return ms
}

function parse(option: string, text: string): number {
  const match = PATTERN.exec(text)
  if (!match) throw invalidOption(option, `must be a number with a unit (ms, s, m, h, d, w), such as 90s or 1.5h, got ${JSON.stringify(text.slice(0, 40))}`)
  return Number(match[1]) * UNIT_MS[match[2] as string]!
}

/** The shortest exact writing of a duration: 90000 is `90s`, 3600000 is `1h`. */
export function formatDuration(ms: number): string {
  for (const unit of ['w', 'd', 'h', 'm', 's']) {
    const size = UNIT_MS[unit]!
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`
  }
  return `${ms}ms`
}

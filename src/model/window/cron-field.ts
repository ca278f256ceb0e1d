/** One field of a cron expression: `*`, numbers, names, ranges, steps and lists of these. */
import type { LedgerError } from '../errors.ts'
import { invalidOption } from '../errors.ts'

export interface FieldSpec {
  readonly name: string
  readonly min: number
  readonly max: number
  /** After so many values it begins again; a longer step cannot mean what it says (no hour has a 90th minute). */
  readonly cycle: number
  /** Three-letter names in order; the first stands for `min`. */
  readonly names?: readonly string[]
}

/** The values of a field in ascending order, each once. @throws INVALID_OPTION naming the field and the value. */
export function parseField(spec: FieldSpec, text: string): number[] {
  const values = new Set(text.split(',').flatMap((item) => parseItem(spec, item)))
  return [...values].toSorted((a, b) => a - b)
}

/** The values of one item of the list. */
export function parseItem(spec: FieldSpec, item: string): number[] {
  const parts = /^(?:(\*)|(\w+)(?:-(\w+))?)(?:\/(\w+))?$/.exec(item)
  if (!parts) throw fieldError(spec, item, 'must be *, a value or a range, with or without a step')
  const [, star, from, to, by] = parts
  const low = star ? spec.min : parseValue(spec, item, from!)
  // 5/15 is 5-59/15, as most parsers read it; Vixie cron refuses it.
  const high = to ? parseValue(spec, item, to) : star || by ? spec.max : low
  const step = by ? parseStep(spec, item, by) : 1
  if (high < low) throw fieldError(spec, item, 'the range runs backwards; write it as two')
  return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, index) => low + index * step)
}

/** One number or name; `item` is quoted when it is wrong. */
export function parseValue(spec: FieldSpec, item: string, text: string): number {
  const named = spec.names?.indexOf(text.toUpperCase()) ?? -1
  if (named >= 0) return spec.min + named
  if (/^h$/i.test(text)) throw fieldError(spec, item, 'H differs from host to host; write the number')
  const value = wholeNumber(text)
  if (value >= spec.min && value <= spec.max) return value
  throw fieldError(spec, item, `must be ${spec.min} to ${spec.max}${spec.names ? ` or ${spec.names[0]} to ${spec.names.at(-1)}` : ''}`)
}

function parseStep(spec: FieldSpec, item: string, text: string): number {
  const step = wholeNumber(text)
  if (step >= 1 && step <= spec.cycle) return step
  throw fieldError(spec, item, `the step must be 1 to ${spec.cycle}`)
}

/** NaN, which is in no range, for anything but one or two digits. */
function wholeNumber(text: string): number {
  return /^\d{1,2}$/.test(text) ? Number(text) : NaN
}

export function fieldError(spec: FieldSpec, value: string, problem: string): LedgerError {
  return invalidOption('cron', `${spec.name} ${JSON.stringify(value.slice(0, 40))}: ${problem}`)
}

/** Reads values out of flags, each with a clear complaint that names the flag. */
import { invalidOption } from '../model/errors.ts'
import { parseInstant } from '../model/window/instant.ts'
import type { FlagValues } from './command.ts'

export function text(flags: FlagValues, name: string): string | undefined {
  const value = flags[name]
  return typeof value === 'string' ? value : undefined
}

export function required(flags: FlagValues, name: string): string {
  const value = text(flags, name)
  if (value === undefined || value === '') throw invalidOption(name, `is missing (--${name} …)`)
  return value
}

/** A whole number between the bounds, both included. */
export function wholeNumber(flags: FlagValues, name: string, min: number, max: number): number | undefined {
  const value = text(flags, name)
  if (value === undefined) return undefined
  const number = Number(value)
  if (!/^\d+$/.test(value) || number < min || number > max) throw invalidOption(name, `must be a whole number from ${min} to ${max}, got ${JSON.stringify(value.slice(0, 40))}`)
  return number
}

/** An instant with its offset: `2026-09-20T10:00:00Z`. A bare local time could be anybody's, so it is refused. */
export function instant(flags: FlagValues, name: string): Date | undefined {
  const value = text(flags, name)
  return value === undefined ? undefined : parseInstant(name, value)
}

export function oneOf<const T extends string>(flags: FlagValues, name: string, choices: readonly T[]): T | undefined {
  const value = text(flags, name)
  if (value === undefined) return undefined
  const choice = choices.find((known) => known === value)
  if (choice === undefined) throw invalidOption(name, `must be one of ${choices.join(', ')}, got ${JSON.stringify(value.slice(0, 40))}`)
  return choice
}

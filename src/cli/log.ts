/** Log lines on stderr: logfmt for people and grep, JSON for programs; one line an event. */
import { invalidOption } from '../model/errors.ts'
import type { FlagValues, Io } from './command.ts'

export type LogFields = Readonly<Record<string, string | number | bigint | boolean | Date | null | undefined>>
export type Log = (fields: LogFields) => void

/** @param flags `--log-format logfmt|json` @throws INVALID_OPTION */
export function openLog(flags: FlagValues, io: Io): Log {
  const format = flags['log-format'] ?? 'logfmt'
  if (format !== 'logfmt' && format !== 'json') throw invalidOption('log-format', `must be logfmt or json, got ${JSON.stringify(format)}`)
  const write = format === 'json' ? jsonLine : logfmtLine
  return (fields) => io.err(`${write({ ...fields, time: new Date() })}\n`)
}

/** Fields without a value are left out, in both formats alike. */
function given(fields: LogFields): [string, string | number | boolean][] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (value === null || value === undefined) return []
    return [[name, value instanceof Date ? value.toISOString() : typeof value === 'bigint' ? value.toString() : value]]
  })
}

function logfmtLine(fields: LogFields): string {
  return given(fields).map(([name, value]) => `${name}=${logfmtValue(String(value))}`).join(' ')
}

// Quoted where a space, a quote, an equals sign or a control character would break the line apart.
function logfmtValue(text: string): string {
  return /^[^\s"=\u0000-\u001f\u007f-\u009f]+$/.test(text) ? text : JSON.stringify(text)
}

/** A fence is written as a number, exactly, however large: JSON has no limit, only JavaScript's parser has. */
export function jsonLine(fields: Readonly<Record<string, unknown>>): string {
  const parts = Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [`${JSON.stringify(name)}:${jsonValue(value)}`]))
  return `{${parts.join(',')}}`
}

function jsonValue(value: unknown): string {
  if (typeof value === 'bigint') return value.toString()
  if (Array.isArray(value)) return `[${value.map(jsonValue).join(',')}]`
  if (typeof value === 'object' && value !== null && !(value instanceof Date)) return jsonLine(value as Record<string, unknown>)
  return JSON.stringify(value) ?? 'null'
}

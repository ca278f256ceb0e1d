/** Payloads and results as JSON text: what can be recorded without loss, and a clear word about what can not. */

/** A result is a receipt, not a data set. */
export const MAX_RESULT_BYTES = 64 * 1024

/** A payload says what to do; data belongs into a table of its own. */
export const MAX_PAYLOAD_BYTES = 1024 * 1024

export type JsonText = { readonly text: string | null } | { readonly problem: string }

/**
 * The JSON of a value; null for `undefined`, which is another thing than JSON's `null`. What JSON would silently
 * change into something else (NaN, a Map, a function, a bigint it cannot write at all) is a problem, said with its path.
 */
export function jsonText(value: unknown): JsonText {
  return textOf(value, MAX_RESULT_BYTES, refuseLoss)
}

/**
 * The same for a column of type JSON, with a bound of its own. Text that one database would take and another refuse (NUL,
 * half a character) is a problem on all of them.
 */
export function jsonColumn(value: unknown, maxBytes: number): JsonText {
  return textOf(value, maxBytes, refuseBadText)
}

/** The value again; `undefined` for null. */
export function jsonValue(text: string | null): unknown {
  return text === null ? undefined : JSON.parse(text)
}

/** Whether the text is what jsonText makes; one that was typed into a row by hand need not be. */
export function isJsonText(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function textOf(value: unknown, maxBytes: number, replacer: (this: unknown, name: string, value: unknown) => unknown): JsonText {
  let text: string | undefined
  try {
    text = JSON.stringify(value, replacer)
  } catch (error) {
    return { problem: (error as Error).message.split('\n')[0]! }
  }
  if (text === undefined) return { text: null }
  const bytes = Buffer.byteLength(text)
  return bytes > maxBytes ? { problem: `it is ${bytes} bytes of JSON; at most ${maxBytes} are recorded` } : { text }
}

function refuseBadText(this: unknown, name: string, value: unknown): unknown {
  for (const text of typeof value === 'string' ? [name, value] : [name]) {
    if (text.includes('\0')) throw new TypeError(`a NUL character ${placeOf(name)} is not taken by every database`)
    if (!text.isWellFormed()) throw new TypeError(`half a character (a lone surrogate) ${placeOf(name)} is not taken by every database`)
  }
  return refuseLoss.call(this, name, value)
}

function placeOf(name: string): string {
  return name === '' ? 'in the text' : `at ${JSON.stringify(name)}`
}

function refuseLoss(this: unknown, name: string, value: unknown): unknown {
  const kind = lossy(value)
  if (kind !== null) throw new TypeError(`${kind} ${name === '' ? 'as the whole value' : placeOf(name)} cannot be written as JSON`)
  if (value === undefined && Array.isArray(this)) throw new TypeError(`undefined at ${JSON.stringify(name)} of an array would become null`)
  return value
}

function lossy(value: unknown): string | null {
  if (typeof value === 'bigint' || typeof value === 'function' || typeof value === 'symbol') return `a ${typeof value}`
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (value instanceof Map || value instanceof Set || value instanceof WeakMap || value instanceof Promise || ArrayBuffer.isView(value)) return `a ${value.constructor.name}`
  return null
}

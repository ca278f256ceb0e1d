/** Text from anywhere (a job's output, an error) made safe to store: any database takes it, and it is bounded in bytes. */

const REPLACEMENT = '\u{FFFD}'
/** All control characters but tab, line feed and carriage return. */
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g
const ASTRAL = /[\u{10000}-\u{10FFFF}]/gu
const NOT_ASCII = /\P{ASCII}/gu

/**
 * At most `maxBytes` bytes of UTF-8 from the head or the tail of the input, with `[… 1234567 bytes cut]` in place of the rest.
 *
 * Nothing vanishes silently: NUL and the other C0 controls become their pictures (NUL is ␀, ESC is ␛), so a terminal
 * that shows the text later obeys no escape sequence in it; C1 controls, lone surrogates and invalid UTF-8 become U+FFFD.
 * No character is split. Of a large input only the part that is kept is copied. The marker counts bytes of the cleaned
 * text, the unseen part as it came; to that belong the `unseenBytes` that the caller has dropped before. A bound too
 * small for the marker gets none.
 */
export function boundText(input: string | Uint8Array, maxBytes: number, keep: 'head' | 'tail', unseenBytes = 0): string {
  const near = nearPart(input, maxBytes, keep)
  const cleaned = Buffer.from(clean(near))
  const total = size(input) - size(near) + cleaned.length + unseenBytes
  if (total <= maxBytes) return cleaned.toString()
  const room = maxBytes - Buffer.byteLength(marker(total))
  if (room < 0) return cut(cleaned, maxBytes, keep).toString()
  const kept = cut(cleaned, room, keep)
  const gap = marker(total - kept.length)
  return keep === 'head' ? kept.toString() + gap : gap + kept.toString()
}

/**
 * The same text without characters outside the Basic Multilingual Plane: what a MySQL utf8mb3 column takes.
 * Never longer in bytes than `text`.
 */
export function bmpText(text: string): string {
  return text.toWellFormed().replace(ASTRAL, REPLACEMENT)
}

/** The last resort, for a column that takes nothing but ASCII: one `?` for every other character. Never longer than `text`. */
export function asciiText(text: string): string {
  return text.replace(NOT_ASCII, '?')
}

/** Enough of the input to fill the bound: a code unit or a byte never becomes less than one byte of cleaned text. */
function nearPart(input: string | Uint8Array, maxBytes: number, keep: 'head' | 'tail'): string | Uint8Array {
  if (input.length <= maxBytes) return input
  const [from, to] = keep === 'head' ? [0, maxBytes] : [input.length - maxBytes, input.length]
  return typeof input === 'string' ? input.slice(from, to) : input.subarray(from, to)
}

/** The near part may begin or end inside a character; its debris is at the far edge, which the marker's room cuts away. */
function clean(part: string | Uint8Array): string {
  const text = typeof part === 'string' ? part.toWellFormed() : bytes(part).toString('utf8')
  return text.replace(CONTROL, picture)
}

function picture(control: string): string {
  const code = control.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : REPLACEMENT
}

function marker(cutBytes: number): string {
  return `[… ${cutBytes} bytes cut]`
}

/** Cuts UTF-8 at a code-point boundary, at or below `room` bytes. */
function cut(utf8: Buffer, room: number, keep: 'head' | 'tail'): Buffer {
  let at = keep === 'head' ? room : utf8.length - room
  const step = keep === 'head' ? -1 : 1
  while (at > 0 && at < utf8.length && (utf8[at]! & 0xc0) === 0x80) at += step
  return keep === 'head' ? utf8.subarray(0, at) : utf8.subarray(at)
}

function size(input: string | Uint8Array): number {
  return typeof input === 'string' ? Buffer.byteLength(input) : input.byteLength
}

function bytes(part: Uint8Array): Buffer {
  return Buffer.from(part.buffer, part.byteOffset, part.byteLength)
}

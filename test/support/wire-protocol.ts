/** As much of the wire protocols as it takes to see statements go by and replies end (for fault-proxy.ts). */

/** A part of what a client sends; with a text when it is a statement. */
interface Part {
  readonly text?: string
  readonly bytes: Buffer
}

/** Fed what comes in; returns what has become complete. */
type Feed<T> = (bytes: Buffer) => T

/** Fed the reply to one statement; true when that was the end of it. */
export type Reply = Feed<boolean>

export interface Protocol {
  statements(): Feed<Part[]>
  reply(): Reply
  /** Another text in place of a statement's. */
  rewrite(statement: Buffer, text: string): Buffer
  /** A reply that is an error. */
  error(code: string): Buffer
}

export function protocolOf(scheme: string): Protocol {
  return scheme.startsWith('postgres') ? postgres : mysql
}

const postgres: Protocol = {
  // The first message has no type; then `Q` is a statement, or everything up to a Sync: Parse where the server does not
  // know the text by a name yet, Bind, Describe, Execute.
  statements() {
    let begun = false
    let unfinished: Buffer[] = []
    const texts = new Map<string, string>()
    const frames = framed((buffer) => (begun ? 5 : 4) <= buffer.length ? buffer.readUInt32BE(begun ? 1 : 0) + (begun ? 1 : 0) : Infinity)
    return (bytes) => {
      const parts: Part[] = []
      for (const frame of frames(bytes)) {
        const type = begun ? String.fromCharCode(frame[0]!) : ''
        begun = true
        if (!/[QPBDES]/.test(type)) {
          parts.push({ bytes: frame })
          continue
        }
        unfinished.push(frame)
        if (type !== 'Q' && type !== 'S') continue
        parts.push({ text: unfinished.map((message) => textOfMessage(message, texts)).join(''), bytes: Buffer.concat(unfinished) })
        unfinished = []
      }
      return parts
    }
  },
  // A reply ends with ReadyForQuery.
  reply() {
    const frames = framed((buffer) => (buffer.length >= 5 ? buffer.readUInt32BE(1) + 1 : Infinity))
    return (bytes) => frames(bytes).some((frame) => frame[0] === 0x5a)
  },
  rewrite: (_, text) => message('Q', Buffer.from(`${text}\0`)),
  error: (code) => Buffer.concat([message('E', Buffer.from(`SERROR\0VERROR\0C${code}\0Minjected by the test\0\0`)), message('Z', Buffer.from('I'))]),
}

/** @param texts of the statements that the server knows, by their names; the last one without a name has the empty one */
function textOfMessage(frame: Buffer, texts: Map<string, string>): string {
  const strings = frame.toString('utf8', 5).split('\0')
  const [first = '', second = ''] = strings
  switch (String.fromCharCode(frame[0]!)) {
    case 'Q':
      return first
    case 'P': // name, text
      texts.set(first, second)
      return ''
    case 'B': // portal, name
      return texts.get(second) ?? ''
    default:
      return ''
  }
}

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type, 'latin1')
  head.writeUInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const COM_QUERY = 0x03
const OK = 0x00
const ERROR = 0xff
const EOF = 0xfe
const MORE_RESULTS = 0x08

const mysql: Protocol = {
  // The client numbers the packets of each exchange from 0, those of its greeting from 1.
  statements() {
    const frames = framed((buffer) => (buffer.length >= 4 ? buffer.readUIntLE(0, 3) + 4 : Infinity))
    return (bytes) => frames(bytes).map((frame) => (frame[3] === 0 && frame[4] === COM_QUERY ? { text: frame.toString('utf8', textStart(frame)), bytes: frame } : { bytes: frame }))
  },
  // Results one after the other: OK, an error, or columns, EOF, rows, EOF. A flag says whether another one follows.
  reply() {
    const frames = framed((buffer) => (buffer.length >= 4 ? buffer.readUIntLE(0, 3) + 4 : Infinity))
    let eofs: number | undefined
    const isLast = (frame: Buffer): boolean => {
      const kind = frame[4]
      if (kind === ERROR) return true
      if (eofs === undefined && kind === OK) return (frame.readUInt16LE(afterInteger(frame, afterInteger(frame, 5))) & MORE_RESULTS) === 0
      eofs ??= 0
      if (kind !== EOF || frame.length >= 13 || ++eofs < 2) return false
      eofs = undefined
      return (frame.readUInt16LE(7) & MORE_RESULTS) === 0
    }
    return (bytes) => frames(bytes).some(isLast)
  },
  rewrite: (statement, text) => packet(0, Buffer.concat([statement.subarray(4, textStart(statement)), Buffer.from(text)])),
  error(code) {
    const number = Buffer.alloc(2)
    number.writeUInt16LE(Number(code))
    return packet(1, Buffer.concat([Buffer.from([ERROR]), number, Buffer.from('#HY000injected by the test')]))
  },
}

/** MySQL's clients put the number of query attributes first (none, in one set); no statement begins with a NUL. */
function textStart(frame: Buffer): number {
  return frame[5] === 0 ? 7 : 5
}

/** Behind a length-encoded integer. */
function afterInteger(frame: Buffer, at: number): number {
  const first = frame[at]!
  return at + (first < 0xfb ? 1 : first === 0xfc ? 3 : first === 0xfd ? 4 : 9)
}

function packet(sequence: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUIntLE(payload.length, 0, 3)
  head[3] = sequence
  return Buffer.concat([head, payload])
}

/** Cuts a stream into its frames; `lengthOf` what has come so far tells how long the first one is. */
function framed(lengthOf: (buffer: Buffer) => number): Feed<Buffer[]> {
  let rest: Buffer = Buffer.alloc(0)
  return (bytes) => {
    const frames: Buffer[] = []
    rest = Buffer.concat([rest, bytes])
    for (let length = lengthOf(rest); length <= rest.length; length = lengthOf(rest)) {
      frames.push(rest.subarray(0, length))
      rest = rest.subarray(length)
    }
    return frames
  }
}

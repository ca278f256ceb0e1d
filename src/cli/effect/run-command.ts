/** Runs the command of an effect: its stdout is the result, its stdin and stderr are ours. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { MAX_RESULT_BYTES } from '../../model/json-value.ts'
import { exitCodeOf, onSignals } from '../exec/signals.ts'

export interface CommandEnd {
  /** 128 + n when it died of signal n. */
  readonly exitCode: number
  /** What it wrote, up to a little more than can be recorded. */
  readonly output: Buffer
  /** Bytes it wrote beyond that; they have gone to our stdout already, after `output`. */
  readonly passedOn: number
}

/** Signals go to the command, whose end is then recorded; should we be killed, nobody knows, and the effect is in doubt. */
export async function runCommand(path: string, argv0: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<CommandEnd> {
  // Before the command is there: a signal that came between the two would end us and leave it running unseen.
  const endSignals = onSignals((signal, order) => child.kill(order === 'kill' ? 'SIGKILL' : signal))
  const child = spawn(path, args, { argv0, env, stdio: ['inherit', 'pipe', 'inherit'] })
  const end = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  const kept: Buffer[] = []
  let bytes = 0
  let passedOn = 0
  child.stdout.on('data', (chunk: Buffer) => {
    if (bytes <= MAX_RESULT_BYTES) {
      kept.push(chunk)
      bytes += chunk.length
      return
    }
    if (passedOn === 0) process.stdout.write(Buffer.concat(kept))
    passedOn += chunk.length
    process.stdout.write(chunk)
  })
  try {
    const [exitCode, signal] = await end
    return { exitCode: exitCodeOf({ exitCode, signal }), output: Buffer.concat(kept), passedOn }
  } finally {
    endSignals()
  }
}

/** What a command wrote, as a result: text where it is UTF-8, else base64. */
export function resultOf({ output, passedOn }: CommandEnd): unknown {
  if (passedOn > 0) return new TooLarge(output.length + passedOn)
  const text = output.toString('utf8')
  return Buffer.from(text).equals(output) ? text : { base64: output.toString('base64') }
}

/** The bytes of a recorded result, whoever recorded it: text and base64 as they were, anything else as a line of JSON. */
export function bytesOf(result: unknown): Buffer {
  if (result === undefined) return Buffer.alloc(0)
  if (typeof result === 'string') return Buffer.from(result)
  const { base64, ...rest } = (typeof result === 'object' && result !== null ? result : {}) as { base64?: unknown }
  if (typeof base64 === 'string' && Object.keys(rest).length === 0) return Buffer.from(base64, 'base64')
  return Buffer.from(`${JSON.stringify(result)}\n`)
}

/** Stands for output that nobody kept: it cannot be written as JSON, and says why. */
export class TooLarge {
  readonly #bytes: number

  constructor(bytes: number) {
    this.#bytes = bytes
  }

  toJSON(): never {
    throw new RangeError(`the command wrote ${this.#bytes} bytes; at most ${MAX_RESULT_BYTES} are recorded`)
  }
}

/** The child's stdout and stderr: how it gets them, and how they reach ours. */
import type { ChildProcess } from 'node:child_process'
import { closeSync, fstatSync } from 'node:fs'
import type { Socket } from 'node:net'
import { handOver } from './leftover.ts'
import type { Pipe } from './pipe.ts'
import { startRelay } from './relay.ts'
import type { Relay } from './relay.ts'
import type { Tail } from './tail.ts'
import type { Watchdog } from './watchdog.ts'

const STDOUT = 1
const STDERR = 2

export interface Output {
  /** What spawn() is to give the child as descriptors 1 and 2. */
  readonly stdio: readonly [number | 'pipe', number | 'pipe']
  /** To be called right after spawn(), also when that failed: lets go of the child's ends and begins to pass on. */
  connect(child: ChildProcess | null): void
  /** The child is over: all it had written is in the tail when this resolves. A slow reader does not delay it. */
  drain(): Promise<void>
  /** Resolves, after drain(), when all of it is written, or its reader is gone; the error if some was lost (disk full). */
  flushed(): Promise<Error | null>
}

/**
 * Where our stdout and stderr are one open file (2>&1 into a log, a pipe of cron's, a terminal), the child gets one pipe
 * for both, and so the order of its lines is its own. Otherwise each has its own pipe.
 * Without real pipes (not Linux, no watchdog) they are Node's sockets: `>/dev/stderr` fails there, and the order of one
 * stream against the other is that of arrival.
 */
export function openOutput(watchdog: Watchdog, tail: Tail): Output {
  const stdout = watchdog.pipe('stdout')
  const stderr = stdout === null || sameFile(STDOUT, STDERR) ? null : watchdog.pipe('stderr')
  const pipes = [stdout, stderr].filter((pipe): pipe is Pipe => pipe !== null)
  const streams: { source: Socket; target: number; relay: Relay }[] = []

  function pass(source: Socket, target: number): void {
    streams.push({ source, target, relay: startRelay(source, target, tail) })
  }

  function connect(child: ChildProcess | null): void {
    for (const { childEnd } of pipes) closeSync(childEnd)
    if (child === null) {
      for (const { source } of pipes) source.destroy()
      return
    }
    const sources = stdout ? [stdout.source, stderr?.source] : [child.stdout, child.stderr]
    sources.forEach((source, index) => source && pass(source as Socket, index === 0 ? STDOUT : STDERR))
  }

  async function drain(): Promise<void> {
    await Promise.all(streams.map(({ relay }) => relay.drain()))
  }

  async function flushed(): Promise<Error | null> {
    const lost = await Promise.all(
      streams.map(async ({ source, target, relay }) => {
        const error = await relay.flushed()
        handOver(source, target)
        return error
      }),
    )
    return lost.find((error) => error !== null) ?? null
  }

  const first = stdout?.childEnd ?? 'pipe'
  return { stdio: [first, stderr?.childEnd ?? first], connect, drain, flushed }
}

function sameFile(a: number, b: number): boolean {
  const [one, other] = [fstatSync(a), fstatSync(b)]
  return one.dev === other.dev && one.ino === other.ino
}

/** Passes one stream of a child's output on to a descriptor of ours, byte for byte and at its reader's pace. */
import { write } from 'node:fs'
import type { Socket } from 'node:net'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Tail } from './tail.ts'

/*
 * Written with write(2) in Node's thread pool, not through process.stdout: that would block the event loop and with it the
 * heartbeats while a terminal is stopped with Ctrl-S, would lose at exit what a pipe's reader has not taken yet, and would set
 * O_NONBLOCK on an open file description that others share: the child's stdin under sshd, the next command of a pipeline.
 * (To stderr Node does so all the same, whenever it destroys a socket: hence EAGAIN below.)
 * The price: process.exit() waits for a write under way, so exit only after `flushed`.
 */
export interface Relay {
  /** The child is over: takes in all it had written, however slow the reader, then reads no more. */
  drain(): Promise<void>
  /** Settles, after drain(), when all that was taken in is written or its reader is gone; the error if some was lost. */
  flushed(): Promise<Error | null>
}

/**
 * More than a pipe or socket holds by default (a pipe: 64 KiB), and as much as one can be made to hold without privilege: what a
 * child wrote before it ended is among the next MiB. A grandchild that writes on and on fills it up, no more.
 */
const DRAIN_BYTES = 1 << 20

const READER_GONE = new Set(['EPIPE', 'ECONNRESET'])

/** Starts at once: one chunk is written before the next one is read. `tail` sees every chunk when it arrives. */
export function startRelay(source: Socket, target: number, tail: Tail): Relay {
  const queue: Buffer[] = []
  let received = 0
  let closed = false
  let draining = false
  let pumping: Promise<void> | null = null
  let lost: Error | null = null

  source.on('data', (chunk: Buffer) => {
    received += chunk.length
    tail.add(chunk)
    queue.push(chunk)
    if (!draining) source.pause()
    pumping ??= pump()
  })
  source.on('error', () => {}) // the other end is gone: `close` follows
  source.on('close', () => (closed = true))

  async function pump(): Promise<void> {
    for (let chunk; (chunk = queue.shift()); ) await pass(chunk)
    pumping = null
    if (!draining) source.resume()
  }

  async function pass(chunk: Buffer): Promise<void> {
    try {
      await writeAll(target, chunk)
    } catch (error) {
      if (READER_GONE.has((error as NodeJS.ErrnoException).code ?? '')) hangUp()
      else lost ??= error as Error // a full disk is no reason to end the job: it goes on, its output does not
    }
  }

  /** Our reader is gone: the child is to learn it as it would have without us, by SIGPIPE or EPIPE. */
  function hangUp(): void {
    queue.length = 0
    source.destroy()
  }

  async function drain(): Promise<void> {
    draining = true
    source.resume()
    const enough = received + DRAIN_BYTES
    for (let before = -1; before !== received && received < enough && !closed; ) {
      before = received
      // What is readable is read between two turns; three, for resume() itself takes effect in the first.
      for (let turns = 0; turns < 3; turns++) await turn()
    }
    source.pause()
  }

  async function flushed(): Promise<Error | null> {
    while (pumping) await pumping
    return lost
  }

  return { drain, flushed }
}

const writeSome = promisify(write)
const LONGEST_PAUSE_MS = 20

async function writeAll(fd: number, chunk: Buffer): Promise<void> {
  let pauseMs = 1
  for (let at = 0; at < chunk.length; ) {
    try {
      at += (await writeSome(fd, chunk, at)).bytesWritten
      pauseMs = 1
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      // It was made non-blocking, by Node or by somebody who shares it, and it is full.
      await sleep(pauseMs)
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    }
  }
}

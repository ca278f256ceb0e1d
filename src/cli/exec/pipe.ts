/** Real pipes for a child's output; Node itself can only make sockets. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { Socket } from 'node:net'

/*
 * Why not spawn's own 'pipe': it is a socket, and a socket cannot be opened by name. `echo … >/dev/stderr`,
 * `tee /dev/stderr` and every program that logs to /dev/stdout work under cron and would fail under us with ENXIO.
 * A pipe can also be given to the child twice, as stdout and as stderr, as `2>&1` does, so that the order is kept.
 */
export interface Pipe {
  /** Our end, to be read. */
  readonly source: Socket
  /** The child's end: for spawn's `stdio`, then to be closed. */
  readonly childEnd: number
}

/**
 * Opens both ends of a pipe that another process holds open, by its name in /proc (Linux; null elsewhere).
 * What it holds already is thrown away. Each end gets an open file description of its own: ours does not block, the child's does.
 */
export function openPipe(path: string): Pipe | null {
  let readEnd: number | undefined
  try {
    readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    if (!fstatSync(readEnd).isFIFO()) throw new Error(`${path} is no pipe`)
    empty(readEnd)
    const childEnd = openSync(path, constants.O_WRONLY)
    return { source: new Socket({ fd: readEnd, readable: true, writable: false }), childEnd }
  } catch {
    if (readEnd !== undefined) closeSync(readEnd)
    return null
  }
}

function empty(fd: number): void {
  try {
    readSync(fd, Buffer.alloc(64))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
  }
}

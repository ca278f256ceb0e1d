/** The watchdog: a small sh process that ends the job when its wrapper is killed, or frozen past its lease. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { openPipe } from './pipe.ts'
import type { Pipe } from './pipe.ts'
import { WATCHDOG_SCRIPT } from './watchdog-script.ts'

/*
 * Nothing a process does can outlive its own SIGKILL, and the kernel's parent-death signal reaches only the direct child.
 * So a second process waits for end-of-file on a socket whose other end only the wrapper holds, and then kills the group.
 * It leads a session of its own, stands in /, holds none of the wrapper's descriptors, and does not keep the wrapper alive.
 *
 * Lines to it: `start` (before the fork), `group PGID` (right after it), `lease HUNDREDTHS` (by then the next one must have
 * come), `done`. End-of-file without `start` ends it; without `group`, it looks for the job by RUNLEDGER_INSTANCE_ID.
 */
export interface Watchdog {
  /** Why there is none (no /bin/sh in the container, no process left): the job may run, but nobody watches. Else null. */
  readonly problem: string | null
  /** Its process; null where there is none. */
  readonly pid: number | null
  /** Pipes for the child's stdout and stderr, the way a shell makes them; null where there are none. To be asked once. */
  pipe(which: 'stdout' | 'stderr'): Pipe | null
  /** The child is about to be forked. */
  starting(): void
  /** The child leads this process group. Written to the socket before it returns. */
  guard(pgid: number): void
  /** The lease was renewed now, and ends in `ms`: unless this is said again by then, the group gets TERM, then KILL. */
  lease(ms: number): void
  /** The child is over, or never began: ends the watchdog and whatever belongs to it. Resolves when it is gone. */
  dismiss(): Promise<void>
}

export interface WatchdogOptions {
  readonly instanceId: string
  /** Between TERM and KILL for a job past its lease; in tenths of a second, rounded up. */
  readonly graceMs: number
  /** The POSIX shell; tests name others. */
  readonly shell?: readonly [string, ...string[]]
}

const PIPE_FD = { stdout: 4, stderr: 5 } as const
/** It ends within a millisecond or two of `done`, unless it is just sitting out the grace period of a job past its lease. */
const PATIENCE_MS = 250

/** Starts it: about 2 ms, which may pass while a claim is made. Never rejects; see `problem`. */
export async function startWatchdog({ instanceId, graceMs, shell = ['/bin/sh'] }: WatchdogOptions): Promise<Watchdog> {
  const [file, ...flags] = shell
  const args = [...flags, '-c', WATCHDOG_SCRIPT, 'runledger-watchdog', instanceId, String(Math.ceil(graceMs / 100))]
  // Under another name than the job's own: it must not take itself for the job. A `sleep` of its can be told by it too.
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', RUNLEDGER_WATCHDOG_OF: instanceId }
  try {
    const sh = spawn(file, args, { detached: true, cwd: '/', env, stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
    const exited = new Promise<void>((resolve) => sh.once('exit', () => resolve()))
    const line = await ready(sh)
    return watchdog(sh, line, exited)
  } catch (error) {
    return nobody(`no watchdog: ${(error as Error).message}`)
  }
}

async function ready(sh: ChildProcess): Promise<Duplex> {
  const line = sh.stdio[3] as Duplex | undefined
  if (sh.pid === undefined || !line) throw (await once(sh, 'error'))[0]
  const died = once(sh, 'exit').then(([code]) => Promise.reject(new Error(`sh ended with ${code}`)))
  await Promise.race([once(line, 'data'), died])
  died.catch(() => {}) // from here on its end is somebody else's business
  line.on('error', () => {}) // it was killed: what is written to it is lost, and the job goes on
  line.resume()
  sh.unref()
  ;(line as unknown as { unref(): void }).unref()
  return line
}

function watchdog(sh: ChildProcess, line: Duplex, exited: Promise<void>): Watchdog {
  const pid = sh.pid!
  // Should it die alone, its timer must not go on to judge a lease that it hears no more of.
  void exited.then(() => signal(pid, 'SIGUSR2'))

  async function dismiss(): Promise<void> {
    sh.ref()
    line.write('done\n')
    if (await gone(exited, PATIENCE_MS)) return
    signal(pid, 'SIGKILL')
    await exited
  }

  return {
    problem: null,
    pid,
    pipe: (which) => openPipe(`/proc/${pid}/fd/${PIPE_FD[which]}`),
    starting: () => void line.write('start\n'),
    guard: (pgid) => void line.write(`group ${pgid}\n`),
    lease: (ms) => void line.write(`lease ${Math.max(1, Math.floor(ms / 10))}\n`),
    dismiss,
  }
}

function nobody(problem: string): Watchdog {
  return { problem, pid: null, pipe: () => null, starting: () => {}, guard: () => {}, lease: () => {}, dismiss: async () => {} }
}

function gone(exited: Promise<void>, withinMs: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => late.resolve(false), withinMs)
  const ended = exited.then(() => {
    clearTimeout(timer)
    return true
  })
  return Promise.race([ended, late.promise])
}

function signal(pgid: number, name: NodeJS.Signals): void {
  try {
    process.kill(-pgid, name)
  } catch {
    // nobody is left of it
  }
}

/** The handler of `runledger work`: one command for one run, watched as those of `exec` are. */
import type { Handler, Instance, WorkRun } from '../../index.ts'
import type { Io } from '../command.ts'
import { GRACE_PART_OF_LEASE, runAttempt, type Job } from '../exec/attempt.ts'
import type { Child } from '../exec/child.ts'
import type { Stop } from '../exec/stop.ts'
import { startWatchdog } from '../exec/watchdog.ts'
import type { Log } from '../log.ts'

export interface JobTerms {
  readonly io: Io
  readonly log: Log
  readonly job: Job
  readonly leaseMs: number
  readonly timeoutMs: number | null
  readonly graceMs: number
}

/** @param named in whose name it works, once that is known @returns the handler, and how to end its commands at once */
export function jobHandler({ io, log, job, leaseMs, timeoutMs, graceMs }: JobTerms, named: Promise<Instance>): { handler: Handler; kill(): void } {
  const children = new Set<Child>()
  const handler: Handler = async (_payload, run) => {
    const instance = await named
    await runAttempt(run.claim, {
      io,
      log,
      ledger: { instance },
      job: { ...job, stdin: run.payloadText ?? '' },
      stop: stopOf(run, children),
      timeoutMs: run.timeoutMs ?? timeoutMs,
      graceMs,
      givesBack: true,
      // Each command has a watchdog of its own, which knows it by its process group.
      nextWatchdog: () => startWatchdog({ instanceId: run.claim.instanceId, graceMs: Math.min(graceMs, leaseMs * GRACE_PART_OF_LEASE) }),
    })
  }
  return { handler, kill: () => children.forEach((child) => void child.terminate('SIGKILL')) }
}

/** A command is told to stop when its worker runs out of time to wait for it; not when the worker is told. */
function stopOf(run: WorkRun, children: Set<Child>): Stop {
  return {
    get requested() {
      return run.isGivenBack
    },
    signal: run.signal,
    get exitCode() {
      return run.isGivenBack ? 143 : 0
    },
    get by() {
      return run.isGivenBack ? 'SIGTERM' : null
    },
    guide(child: Child) {
      const end = () => {
        if (run.isGivenBack) void child.terminate('SIGTERM')
      }
      run.signal.addEventListener('abort', end)
      children.add(child)
      end()
      return () => {
        run.signal.removeEventListener('abort', end)
        children.delete(child)
      }
    },
    standDown: () => () => {},
  }
}

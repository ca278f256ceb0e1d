/** The job: one child process that leads a group of its own, watched, with its output passed on and its end told. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { endOfGroup, signalGroup } from './group.ts'
import { openOutput } from './output.ts'
import type { Output } from './output.ts'
import { startTail } from './tail.ts'
import type { Tail } from './tail.ts'
import type { Watchdog } from './watchdog.ts'

export interface ChildSpec {
  /** The program, as findCommand() gave it. */
  readonly path: string
  /** The command as it was typed: what the program sees as its own name. */
  readonly argv0: string
  readonly args: readonly string[]
  /** All of its stdin; without it, ours. */
  readonly stdin?: string | undefined
  readonly env: NodeJS.ProcessEnv
  /** Goes into the child's environment as RUNLEDGER_INSTANCE_ID, by which the watchdog can find it. */
  readonly instanceId: string
  /** How much of the end of the output is kept, both streams together in order of arrival. */
  readonly tailBytes: number
  /** Between the first signal of terminate() and SIGKILL. */
  readonly graceMs: number
  /** Started for this child, which dismisses it when it is over. */
  readonly watchdog: Watchdog
}

export interface ChildEnd {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly outputTail: Buffer
  /** How many bytes of output came before those of the tail. */
  readonly unkeptBytes: number
}

export interface Child {
  readonly pid: number
  /**
   * Resolves when the direct child has ended and all it had written is in the tail. Neither a slow reader of our output nor
   * a grandchild that keeps the output open delays it.
   */
  readonly ended: Promise<ChildEnd>
  /** To every process of the group; false when nobody was reached, or the child is over and its group is not being ended. */
  signal(name: NodeJS.Signals): boolean
  /** `first` to the group now, SIGKILL after `graceMs` (that of the spec); resolves when none of the group is left. May be called again. */
  terminate(first: NodeJS.Signals, graceMs?: number): Promise<void>
  /**
   * Resolves, after `ended`, when its output is written to our stdout and stderr, or their readers are gone; with the error if
   * some was lost (disk full). It waits for a slow reader as long as that takes, and process.exit() would wait as well: record
   * the run before, exit after, and let signals have their default effect meanwhile, or a stuck reader holds us for ever.
   */
  flushed(): Promise<Error | null>
}

/** The command was found, yet the system would not start it: too many arguments, no memory, a binary of another machine. */
export type CannotStart = { readonly exitCode: 126 | 127; readonly problem: string }

/** Starts the job. Its stdin is ours, untouched, or what the spec says; its stdout and stderr pass through us; its group is its own (setsid). */
export async function startChild(spec: ChildSpec): Promise<Child | CannotStart> {
  const tail = startTail(spec.tailBytes)
  const output = openOutput(spec.watchdog, tail)
  spec.watchdog.starting()
  const started = await spawnChild(spec, output)
  if ('problem' in started) {
    await spec.watchdog.dismiss()
    return started
  }
  return supervise(started, spec, output, tail)
}

async function spawnChild(spec: ChildSpec, output: Output): Promise<ChildProcess | CannotStart> {
  try {
    const child = spawn(spec.path, spec.args, {
      argv0: spec.argv0,
      env: { ...spec.env, RUNLEDGER_INSTANCE_ID: spec.instanceId },
      detached: true,
      stdio: [spec.stdin === undefined ? 'inherit' : 'pipe', ...output.stdio],
    })
    if (child.pid === undefined) throw (await once(child, 'error'))[0]
    spec.watchdog.guard(child.pid) // before anything else: until it is told, it must search
    output.connect(child)
    child.stdin?.on('error', () => {}) // It need not read what it was given.
    child.stdin?.end(spec.stdin)
    return child
  } catch (error) {
    output.connect(null)
    const { code, message } = error as NodeJS.ErrnoException
    return { exitCode: code === 'ENOENT' ? 127 : 126, problem: `${spec.argv0}: cannot be started: ${message}` }
  }
}

function supervise(child: ChildProcess, spec: ChildSpec, output: Output, tail: Tail): Child {
  const pid = child.pid!
  let over = false
  let gone = false
  let terminating: Promise<void> | null = null
  let unwatched: Promise<void> | null = null
  const ended = end()

  async function end(): Promise<ChildEnd> {
    const [exitCode, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    over = true
    unwatched = (terminating ?? Promise.resolve()).then(() => spec.watchdog.dismiss())
    await output.drain()
    const outputTail = tail.contents()
    return { exitCode, signal, outputTail, unkeptBytes: tail.total - outputTail.length }
  }

  function signal(name: NodeJS.Signals): boolean {
    return (!over || (terminating !== null && !gone)) && signalGroup(pid, name)
  }

  function terminate(first: NodeJS.Signals, graceMs = spec.graceMs): Promise<void> {
    signalGroup(pid, first)
    signalGroup(pid, 'SIGCONT') // a stopped process gets no signal but KILL until it goes on
    if (terminating === null || graceMs < spec.graceMs) terminating = endOfGroup(pid, graceMs).then(() => void (gone = true))
    return terminating
  }

  async function flushed(): Promise<Error | null> {
    await ended
    const lost = await output.flushed()
    await unwatched
    return lost
  }

  return { pid, ended, signal, terminate, flushed }
}

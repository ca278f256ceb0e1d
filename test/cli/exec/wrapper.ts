/** The fixture wrapper as a process under test: started with its own mark, read through its report, and cleaned up after. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import type { ChildProcess, StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

export const FIXTURE = join(import.meta.dirname, 'fixture-wrapper.ts')

/** One line of the fixture's report. */
export interface Step {
  step: 'signal' | 'unwatched' | 'started' | 'ended' | 'flushed'
  pid: number
  wrapper: number
  signal: string | null
  order: string
  exitCode: number | null
  tail: string
  lost: string | null
  rssMiB: number
}

export interface Wrapper {
  /** What was spawned: node, or the command it stands behind (`under`). */
  readonly process: ChildProcess
  /** In the environment or arguments of every process that belongs to this wrapper. */
  readonly mark: string
  /** A new empty folder, removed after the test. */
  readonly folder: string
  /** Resolves with that step of the report when it is there. */
  step(name: Step['step']): Promise<Step>
  steps(): Step[]
  /** Resolves when it has ended and its output is closed. */
  readonly end: Promise<{ exitCode: number | null; signal: NodeJS.Signals | null; stdout: Buffer; stderr: Buffer }>
}

export interface WrapperOptions {
  readonly env?: NodeJS.ProcessEnv
  readonly stdio?: StdioOptions
  /** A command line to put before `node fixture-wrapper.ts`. */
  readonly under?: readonly string[]
}

let count = 0

/** Starts `node fixture-wrapper.ts -- …command`. When the test ends, nothing of it may be left; what is, is killed and fails it. */
export function startWrapper(t: TestContext, command: readonly string[], { env = {}, stdio = ['ignore', 'pipe', 'pipe'], under = [] }: WrapperOptions = {}): Wrapper {
  const mark = `wrapper-${process.pid}-${++count}-mark`
  const folder = mkdtempSync(join(tmpdir(), 'wrapper-'))
  const report = join(folder, 'report')
  const [file = '', ...args] = [...under, process.execPath, FIXTURE, '--', ...command]
  const child = spawn(file, args, { stdio, cwd: folder, env: { ...process.env, FIXTURE_REPORT: report, FIXTURE_INSTANCE: mark, ...env } })
  t.after(async () => {
    const left = await leftOf(mark)
    for (const pid of left) kill(pid)
    rmSync(folder, { recursive: true })
    assert.deepEqual(left.map(describe), [], 'no process is left')
  })

  const steps = (): Step[] => readLines(report).map((line) => JSON.parse(line) as Step)
  const stdout = collect(child.stdout)
  const stderr = collect(child.stderr)
  const end = once(child, 'close').then(async ([exitCode, signal]) => ({ exitCode, signal, stdout: await stdout, stderr: await stderr }))
  return { process: child, mark, folder, steps, end, step: (name) => eventually(() => steps().find(({ step }) => step === name), `the step ${name}`) }
}

/** The pids whose environment or arguments bear the mark. */
export function processesOf(mark: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => procFile(pid, 'environ').includes(mark) || procFile(pid, 'cmdline').includes(mark))
    .map(Number)
}

export function isRunning(pid: number): boolean {
  const stat = procFile(pid, 'stat')
  return stat !== '' && !/\) [ZX] /.test(stat)
}

/** With SIGKILL, if it is still there. */
export function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it is gone already
  }
}

/** Polls until `probe` gives something; events that other processes make can be had in no other way. */
export async function eventually<T>(probe: () => T | undefined | false, what: string, withinMs = 30_000): Promise<T> {
  for (const deadline = performance.now() + withinMs; ; await sleep(10)) {
    const found = probe()
    if (found !== undefined && found !== false) return found
    assert.ok(performance.now() < deadline, `${what} did not come within ${withinMs} ms`)
  }
}

/** Those still there after a moment: a watchdog needs a few milliseconds to end. */
async function leftOf(mark: string): Promise<number[]> {
  let left = processesOf(mark)
  for (const deadline = performance.now() + 1000; left.length > 0 && performance.now() < deadline; await sleep(10)) left = processesOf(mark)
  return left
}

function describe(pid: number): string {
  return `${pid} ${procFile(pid, 'cmdline').replaceAll('\0', ' ').slice(0, 60)}`
}

export function procFile(pid: number | string, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1')
  } catch {
    return ''
  }
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}

/** All of a stream, or what came before the test closed it. */
async function collect(stream: Readable | null): Promise<Buffer> {
  const chunks: Buffer[] = []
  stream?.on('data', (chunk: Buffer) => chunks.push(chunk))
  if (stream !== null) await once(stream, 'close')
  return Buffer.concat(chunks)
}

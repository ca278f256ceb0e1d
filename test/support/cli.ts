/** The command line as users run it: real processes of the built binary, each on a ledger of the test's own. */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { migrate } from '../../src/index.ts'
import type { Row, TestDatabase } from './databases.ts'

const root = join(import.meta.dirname, '../..')
/** `node BINARY exec …`; built when it is not what stands in the checkout (scripts/test has built it before). */
export const BINARY = join(root, 'dist/bin/runledger.js')
execFileSync('bash', ['-c', '. scripts/toolchain.sh; build_if_stale'], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` } })

export interface CliOptions {
  /** On top of a short environment that has no RUNLEDGER_ variable but the database. */
  readonly env?: NodeJS.ProcessEnv
  /** All of its stdin; an empty one by default. */
  readonly stdin?: string | Uint8Array
  readonly cwd?: string
  /** A command line to put before `node runledger.js`, such as `unshare --uts`. */
  readonly under?: readonly string[]
}

export interface Ran {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  readonly stdoutBytes: Buffer
}

export interface Running {
  /** Node's, or that of the command it stands behind (`under`). */
  readonly pid: number
  /** In the environment of all that belongs to it but the watchdog; see processesWith(). */
  readonly mark: string
  readonly process: ChildProcess
  /** Resolves with the first line of stderr that matches, once it is there; rejects when the process ends without it. */
  line(pattern: RegExp): Promise<string>
  /** Resolves when all of stderr so far satisfies the probe. */
  until(probe: (stderr: string) => boolean, what: string): Promise<unknown>
  /** Resolves when it has ended and its output is closed. */
  readonly end: Promise<Ran>
}

/** A ledger, the command line on it, and raw SQL past the product. */
export interface TestLedger {
  readonly url: string
  sql(text: string): Promise<Row[]>
  run(args: readonly string[], options?: CliOptions): Promise<Ran>
  start(t: TestContext, args: readonly string[], options?: CliOptions): Running
}

/** To be called in a suite of eachDatabase: a migrated database for all of its tests. */
export function ledgerOn(db: TestDatabase): TestLedger {
  let url = ''
  before(async () => {
    url = await db.url()
    await migrate(url)
  })
  return testLedger(() => url, (text) => db.admin(text, url))
}

/** A SQLite ledger for the tests of one file: where all that matters is the command line. */
export function embeddedLedger(): TestLedger {
  const folder = newFolder()
  const file = join(folder, 'ledger.db')
  before(() => migrate(`sqlite:${file}`))
  return testLedger(() => `sqlite:${file}`, async (text) => {
    const db = new DatabaseSync(file, { timeout: 5000 })
    try {
      const statement = db.prepare(text)
      if (statement.columns().length > 0) return statement.all().map((row) => ({ ...row }))
      db.exec(text)
      return []
    } finally {
      db.close()
    }
  })
}

/** An empty folder that is removed after the suite it is asked for in, or after the test. */
export function newFolder(t?: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'runledger-cli-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  if (t === undefined) after(remove)
  else t.after(remove)
  return folder
}

function testLedger(url: () => string, sql: TestLedger['sql']): TestLedger {
  const on = ({ env, ...options }: CliOptions): CliOptions => ({ ...options, env: { RUNLEDGER_DB: url(), ...env } })
  return {
    get url() {
      return url()
    },
    sql,
    run: (args, options = {}) => run(args, on(options)),
    start: (t, args, options = {}) => start(t, args, on(options)),
  }
}

const TOO_LONG_MS = 60_000

/** Runs it to its end. */
export async function run(args: readonly string[], options: CliOptions = {}): Promise<Ran> {
  return launch(args, options).end
}

/** Starts it. When the test ends, nothing of it may be left; what is, is killed and fails the test. */
export function start(t: TestContext, args: readonly string[], options: CliOptions = {}): Running {
  const running = launch(args, options)
  t.after(() => gone(running.mark, 1000))
  return running
}

let count = 0

function launch(args: readonly string[], { env = {}, stdin = '', cwd, under = [] }: CliOptions): Running {
  const mark = `cli-${process.pid}-${++count}-mark`
  const [file = '', ...words] = [...under, process.execPath, BINARY, ...args]
  const child = spawn(file, words, { cwd, env: { ...shortEnvironment(), CLI_MARK: mark, ...env }, stdio: 'pipe' })
  child.stdin.on('error', () => {}) // It need not read what it was given.
  child.stdin.end(stdin)
  const stdout = collect(child.stdout)
  const stderr = collect(child.stderr)
  let tooLong = false
  const watch = setTimeout(() => {
    tooLong = true
    for (const pid of processesWith(mark)) kill(pid, 'SIGKILL')
  }, TOO_LONG_MS)
  const end = once(child, 'close').then(([code, signal]: unknown[]): Ran => {
    clearTimeout(watch)
    assert.ok(!tooLong, `runledger ${args.join(' ')} took longer than ${TOO_LONG_MS} ms: ${stderr().toString()}`)
    const bytes = stdout()
    return { code: code as number | null, signal: signal as NodeJS.Signals | null, stdout: bytes.toString(), stderr: stderr().toString(), stdoutBytes: bytes }
  })
  async function line(pattern: RegExp): Promise<string> {
    let ended = false
    void end.catch(() => {}).then(() => (ended = true))
    return until(() => {
      const found = stderr().toString().split('\n').find((text) => pattern.test(text))
      if (found === undefined && ended) throw new Error(`it ended without ${pattern}: ${stderr().toString()}`)
      return found
    }, `a line ${pattern}`, TOO_LONG_MS)
  }
  return { pid: child.pid!, process: child, mark, line, end, until: (probe, what) => until(() => probe(stderr().toString()), what) }
}

function shortEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(['PATH', 'HOME', 'LANG', 'TMPDIR', 'RUNLEDGER_TEST_RUN'].flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])))
}

function collect(stream: NodeJS.ReadableStream): () => Buffer {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks)
}

/** Polls until `probe` gives something; what other processes do can be had in no other way. */
export async function until<T>(probe: () => T | Promise<T>, what: string, withinMs = 15_000): Promise<Exclude<T, undefined | null | false>> {
  for (const deadline = performance.now() + withinMs; ; await sleep(10)) {
    const found = await probe()
    if (found !== undefined && found !== null && found !== false) return found as Exclude<T, undefined | null | false>
    assert.ok(performance.now() < deadline, `${what} did not come within ${withinMs} ms`)
  }
}

/** The pids whose environment or arguments bear the mark: an instance id, for one, stands in those of a job and its watchdog. */
export function processesWith(mark: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)
  return pids.filter((pid) => isRunning(pid) && (procFile(pid, 'environ').includes(mark) || procFile(pid, 'cmdline').includes(mark)))
}

/** Resolves when no process bears the mark any more; kills them and rejects with their names when they stay. */
export async function gone(mark: string, withinMs = 15_000): Promise<void> {
  let left = processesWith(mark)
  for (const deadline = performance.now() + withinMs; left.length > 0 && performance.now() < deadline; await sleep(10)) left = processesWith(mark)
  const names = left.map((pid) => `${pid} ${procFile(pid, 'cmdline').replace(/\n[^]*\n/, ' … ').replaceAll('\0', ' ')} ${procFile(pid, 'wchan')}`)
  for (const pid of left) kill(pid, 'SIGKILL')
  assert.deepEqual(names, [], 'no process is left')
}

export function isRunning(pid: number): boolean {
  const stat = procFile(pid, 'stat')
  return stat !== '' && !/\) [ZX] /.test(stat)
}

export function procFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1')
  } catch {
    return ''
  }
}

export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended meanwhile.
  }
}

/** A logfmt line as its fields. */
export function fieldsOf(line: string): Record<string, string> {
  const pairs = line.matchAll(/([a-z_]+)=("(?:[^"\\]|\\.)*"|\S*)/g)
  return Object.fromEntries([...pairs].map(([, name = '', value = '']) => [name, value.startsWith('"') ? (JSON.parse(value) as string) : value]))
}

/** For `skip`: false where unshare(1) may make these namespaces (`--pid`, `--uts`, …), else why not. */
export function cannotUnshare(...namespaces: string[]): string | false {
  return spawnSync('unshare', [...namespaces, 'true']).status === 0 ? false : `unshare ${namespaces.join(' ')} is not permitted here: it takes root`
}

/** An instant as raw SQL gives it: text from SQLite, a Date from the servers. */
export function iso(instant: unknown): string {
  return new Date(instant as string | Date).toISOString()
}

/** A shell's words for a test's job: `sh -c script`. */
export function sh(script: string): string[] {
  return ['--', 'sh', '-c', script]
}

/** A host whose clock says what the demonstration wants: the command line under libfaketime, on a ledger in a SQLite file. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { join } from 'node:path'

export const BINARY = join(import.meta.dirname, '../../dist/bin/runledger.js')

const ASK = `
  const { DatabaseSync } = require('node:sqlite')
  const [file, statement] = process.argv.slice(1)
  console.log(JSON.stringify(new DatabaseSync(file, { readOnly: true }).prepare(statement).all()))`

export interface Said {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export class FakeHost {
  readonly file: string
  readonly #library: string

  constructor(file: string) {
    const [library] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')
    if (library === undefined) throw new Error('libfaketime is not there')
    this.file = file
    this.#library = library
  }

  /** Runs a command that begins at that instant, by its own clock and, as it is the same, by the database's. */
  async at(instant: Date, args: readonly string[], launcher = 'cron'): Promise<Said> {
    const child = this.start(instant, args, launcher)
    const said = { stdout: '', stderr: '' }
    child.stdout.on('data', (chunk: Buffer) => (said.stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (said.stderr += chunk.toString()))
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, ...said }
  }

  start(instant: Date, args: readonly string[], launcher = 'cron') {
    return spawn(process.execPath, [BINARY, ...args], { env: this.#environment(instant, launcher), stdio: ['ignore', 'pipe', 'pipe'] })
  }

  /** Rows of a statement that is asked at that instant, past the product. */
  sqlAt(instant: Date, statement: string): Record<string, unknown>[] {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', ASK, this.file, statement], { env: this.#environment(instant, 'tty'), encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
    return JSON.parse(stdout) as Record<string, unknown>[]
  }

  #environment(instant: Date, launcher: string): NodeJS.ProcessEnv {
    return {
      PATH: process.env['PATH'], HOME: process.env['HOME'], TZ: 'UTC', RUNLEDGER_DB: `sqlite:${this.file}`, RUNLEDGER_LAUNCHER: launcher,
      LD_PRELOAD: this.#library, FAKETIME: `@${instant.toISOString().slice(0, 19).replace('T', ' ')}`, FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
  }
}

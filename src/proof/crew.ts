/** The processes of a proof: started, killed, frozen and replaced; every one is another after its death. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { HistoryWriter } from './history.ts'
import type { Random } from './random.ts'
import { KILLED } from './read-history.ts'
import { SPEC_VARIABLE, type WorkerSpec } from './worker-spec.ts'

export interface CrewOptions {
  readonly url: string
  readonly folder: string
  /** Starts a worker: the program and its arguments. */
  readonly command: readonly [string, ...string[]]
  /** For a worker that is started as the nth one. */
  readonly environment?: (nth: number) => NodeJS.ProcessEnv
  readonly random: Random
  /** The pids of those who hold a run just now: they are the best victims. */
  readonly holders?: () => Promise<readonly (number | null)[]>
}

interface Member {
  readonly spec: WorkerSpec
  readonly process: ChildProcess
  readonly ended: Promise<void>
}

/** How often it is looked for a holder before anybody will do. */
const LOOKS = 50

export class Crew {
  readonly #options: CrewOptions
  readonly #history: HistoryWriter
  readonly #members = new Set<Member>()
  readonly #posts: Promise<void>[] = []
  readonly #problems: string[] = []
  #started = 0
  #closing = false
  kills = 0
  freezes = 0

  constructor(options: CrewOptions) {
    this.#options = options
    this.#history = new HistoryWriter(join(options.folder, 'crew.jsonl'))
  }

  /** Fills a post: who is killed, or dies by itself, has another in its place, until one comes to its end. */
  start(spec: Omit<WorkerSpec, 'name' | 'seed' | 'folder' | 'parent'>): void {
    const fill = async () => {
      for (let first = true; first || !this.#closing; first = false) {
        const member = this.#launch(spec)
        await member.ended
        const { exitCode, signalCode } = member.process
        if (exitCode === 0) return
        if (signalCode === null) return void this.#problems.push(`${member.spec.name} ended with ${exitCode}`)
      }
    }
    this.#posts.push(fill())
  }

  /** SIGKILL to one of them. @returns false when there is none */
  async kill(role?: WorkerSpec['role']): Promise<boolean> {
    const victim = await this.#pick(role)
    if (!victim) return false
    // Noted first: from here on it may be dead, and whoever takes over knows no more than we do.
    this.#history.seen(KILLED, { victim: victim.spec.name })
    this.kills++
    victim.process.kill('SIGKILL')
    await victim.ended
    return true
  }

  /** SIGSTOP to one of them, and SIGCONT after a while. @returns false when there is none */
  async freeze(ms: number, role?: WorkerSpec['role']): Promise<boolean> {
    const victim = await this.#pick(role)
    if (!victim) return false
    this.#history.seen('frozen', { victim: victim.spec.name, ms })
    this.freezes++
    victim.process.kill('SIGSTOP')
    await sleep(ms)
    victim.process.kill('SIGCONT')
    return true
  }

  /** Waits for the workers, then ends the reapers. @returns false when it took too long; then all of them are gone too */
  async finish(withinMs: number): Promise<boolean> {
    const late = new AbortController()
    const timeout = sleep(withinMs, false, { signal: late.signal }).catch(() => false)
    const done = this.#whenWorkersAreDone().then(() => true)
    const finished = await Promise.race([done, timeout])
    late.abort()
    this.#closing = true
    for (const { spec, process } of this.#members) process.kill(finished && spec.role === 'reaper' ? 'SIGTERM' : 'SIGKILL')
    await Promise.all(this.#posts)
    return finished && this.#problems.length === 0
  }

  /** What went wrong with processes that nobody killed. */
  get problems(): readonly string[] {
    return this.#problems
  }

  /** At once, whatever they do. */
  async end(): Promise<void> {
    this.#closing = true
    for (const { process } of this.#members) process.kill('SIGKILL')
    await Promise.all(this.#posts)
  }

  get isDone(): boolean {
    return ![...this.#members].some(({ spec }) => spec.role === 'worker')
  }

  async #whenWorkersAreDone(): Promise<void> {
    while (!this.isDone && !this.#closing) await sleep(10)
  }

  #launch(post: Omit<WorkerSpec, 'name' | 'seed' | 'folder' | 'parent'>): Member {
    const { url, folder, command: [program, ...args], environment, random } = this.#options
    const nth = ++this.#started
    const spec: WorkerSpec = { ...post, folder, parent: process.pid, name: `${post.role}-${nth}`, seed: Math.floor(random() * 2 ** 31) }
    const env = { ...process.env, RUNLEDGER_DB: url, ...environment?.(nth), [SPEC_VARIABLE]: JSON.stringify(spec) }
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'inherit'], env })
    const member: Member = { spec, process: child, ended: once(child, 'exit').then(() => void this.#members.delete(member)) }
    this.#members.add(member)
    return member
  }

  /** One that holds a run, if there is one within a moment. */
  async #pick(role: WorkerSpec['role'] = 'worker'): Promise<Member | undefined> {
    const { holders, random } = this.#options
    const oneOf = (among: readonly Member[]) => among[Math.floor(random() * among.length)]
    for (let look = 0; look < LOOKS && role === 'worker' && holders; look++) {
      const pids = await holders()
      const victim = oneOf(this.#able(role).filter(({ process }) => pids.includes(process.pid!)))
      if (victim) return victim
      await sleep(10)
    }
    return oneOf(this.#able(role))
  }

  #able(role: WorkerSpec['role']): Member[] {
    return [...this.#members].filter(({ spec, process }) => spec.role === role && process.exitCode === null && process.signalCode === null)
  }
}

/** A PostgreSQL of a test's own, to be killed, promoted and lied to. It listens on a Unix socket only, so no port can be taken. */
import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'

const run = promisify(execFile)

export class PrivatePostgres {
  /** Of the whole family: it has the socket of each server. */
  readonly #folder: string
  /** Names the socket, as PostgreSQL has it. */
  readonly #number: number
  #server: ChildProcess | undefined
  #family: PrivatePostgres[]

  /** Use privatePostgres(). */
  constructor(folder: string, number: number, family: PrivatePostgres[]) {
    this.#folder = folder
    this.#number = number
    this.#family = family
    family.push(this)
  }

  get url(): string {
    return `postgres://app@localhost:${this.#number}/postgres?host=${this.#folder}`
  }

  /** As a host among several in a URL. */
  get host(): string {
    return `${encodeURIComponent(this.#folder)}:${this.#number}`
  }

  get socket(): string {
    return join(this.#folder, `.s.PGSQL.${this.#number}`)
  }

  async init(): Promise<this> {
    await this.#tool('initdb', '-D', this.#data, '-U', 'app', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync')
    return this
  }

  async start(env: NodeJS.ProcessEnv = {}, more: readonly string[] = []): Promise<this> {
    const settings = [...more, `port=${this.#number}`, 'listen_addresses=', `unix_socket_directories=${this.#folder}`, 'fsync=off', 'shared_buffers=16MB']
    this.#server = spawn(tool('postgres'), ['-D', this.#data, ...settings.flatMap((setting) => ['-c', setting])], { ...unprivilegedUser(), cwd: this.#folder, env: { ...process.env, ...env }, stdio: 'ignore' })
    const died = once(this.#server, 'exit').then(() => 'died')
    while ((await Promise.race([this.#answers(), died])) !== true) {
      if (this.#server.exitCode !== null) throw new Error(`PostgreSQL in ${this.#data} does not start`)
      await sleep(20)
    }
    return this
  }

  /** Starts it with a clock that setClock moves. */
  async startWithFalseClock(): Promise<this> {
    const library = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')[0]
    if (library === undefined) throw new Error('libfaketime is not there: run scripts/test, which installs it')
    this.setClock('+0')
    return this.start({ LD_PRELOAD: library, FAKETIME_TIMESTAMP_FILE: this.#clock, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' })
  }

  /** @param offset from the true time, such as `-1h` */
  setClock(offset: string): void {
    writeFileSync(this.#clock, offset, { mode: 0o644 })
  }

  /** A standby that confirms every commit of this server before it is acknowledged. */
  async standby(): Promise<PrivatePostgres> {
    const standby = await this.#copy(`host=${this.#folder} port=${this.#number}`)
    await this.query(`alter system set synchronous_standby_names = 'standby'`)
    await this.query('select pg_reload_conf()')
    while ((await this.query(`select 1 from pg_stat_replication where sync_state = 'sync'`)).length === 0) await sleep(20)
    return standby
  }

  /** A standby that is told of commits after they were acknowledged. @param port of 127.0.0.1, where it reaches this server */
  async lateStandby(port: number): Promise<PrivatePostgres> {
    const standby = await this.#copy(`host=127.0.0.1 port=${port}`)
    while ((await this.query(`select 1 from pg_stat_replication where state = 'streaming'`)).length === 0) await sleep(20)
    return standby
  }

  async promote(): Promise<void> {
    await this.query('select pg_promote(true)')
  }

  /** SIGKILL to the server and all of its processes, as when its machine loses power. */
  async kill(): Promise<void> {
    const { pid, exitCode, signalCode } = this.#server!
    if (exitCode !== null || signalCode !== null) return
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' }).split('\n').map(Number).filter((child) => child > 0)
    const exited = once(this.#server!, 'exit')
    for (const victim of [pid!, ...children]) {
      try {
        process.kill(victim, 'SIGKILL')
      } catch {
        // It went with the others.
      }
    }
    await exited
  }

  async query(sql: string): Promise<Record<string, unknown>[]> {
    const client = new pg.Client(this.url)
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows
    } finally {
      await client.end()
    }
  }

  /** Ends the whole family and removes its data. */
  async remove(): Promise<void> {
    await Promise.all(this.#family.filter((server) => server.#server).map((server) => server.kill()))
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** @param place where the copy goes on to hear from this server */
  async #copy(place: string): Promise<PrivatePostgres> {
    const copy = new PrivatePostgres(this.#folder, this.#number + 1, this.#family)
    await this.#tool('pg_basebackup', '-D', copy.#data, '-d', `host=${this.#folder} port=${this.#number} user=app`, '-R', '-X', 'stream', '-c', 'fast', '--no-sync')
    return copy.start({}, [`primary_conninfo=${place} user=app application_name=standby sslmode=disable gssencmode=disable`])
  }

  get #clock(): string {
    return join(this.#folder, 'clock')
  }

  get #data(): string {
    return join(this.#folder, `data-${this.#number}`)
  }

  async #answers(): Promise<boolean> {
    return this.query('select 1').then(() => true, () => false)
  }

  async #tool(name: string, ...args: string[]): Promise<void> {
    await run(tool(name), args, { ...unprivilegedUser(), cwd: this.#folder })
  }
}

/** Made and initialized, but not started. */
export async function privatePostgres(): Promise<PrivatePostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'runledger-pg-'))
  const { uid, gid } = unprivilegedUser()
  if (uid !== undefined) chownSync(folder, uid, gid!)
  return new PrivatePostgres(folder, 5432, []).init()
}

function tool(name: string): string {
  const found = globSync(`/usr/lib/postgresql/*/bin/${name}`).toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1)
  if (found === undefined) throw new Error(`PostgreSQL's ${name} is not there: run scripts/test, which installs it`)
  return found
}

/** PostgreSQL refuses to run as root; then it runs as the user that its package made. */
export function unprivilegedUser(): { uid?: number; gid?: number } {
  if (process.getuid!() !== 0) return {}
  const id = (option: string) => Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

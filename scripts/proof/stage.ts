/** Where a fault is played: a database of one kind, fresh ledgers in it, and rounds with the terms of the run. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../src/index.ts'
import { playRound, type Round, type RoundResult } from '../../src/proof/round.ts'
import { program } from './programs.ts'
import type { TestDatabase } from '../../test/support/databases.ts'
import type { ServerName, TestServer } from '../../test/support/each-server.ts'
import { privateServer, type PrivateServer } from '../../test/support/private-server.ts'

const WORKER = 'src/proof/worker-process.ts'

export interface Size {
  /** Keys of each of the two tasks of a round. */
  readonly keys: number
  /** Runs of a round that are enqueued. */
  readonly queued: number
  /** Faults of a round, at most. */
  readonly faults: number
  readonly workers: number
  readonly withinMs: number
  readonly leaseMs: number
}

export type Play = Partial<Omit<Round, 'name' | 'folder' | 'seed'>>

export class Stage {
  readonly db: TestDatabase
  readonly seed: number
  readonly size: Size
  readonly #folder: string
  #rounds = 0
  #own: PrivateServer | undefined

  constructor(db: TestDatabase, folder: string, seed: number, size: Size) {
    this.db = db
    this.seed = seed
    this.size = size
    this.#folder = folder
  }

  get leaseMs(): number {
    return this.size.leaseMs
  }

  /** A new, migrated ledger. */
  async ledger(): Promise<string> {
    const url = await this.db.url()
    await migrate(url)
    return url
  }

  /** A server of our own, started at the first call, that keeps what it acknowledged through a crash; and a new ledger on it. */
  async ownServer(): Promise<{ server: PrivateServer; url: string }> {
    const { name } = this.#asServer()
    this.#own ??= await privateServer(name, { durable: true })
    const database = `proof_${this.#rounds}_${Date.now()}`
    await this.db.admin(`create database ${database}`, this.#own.url)
    const url = new URL(`/${database}`, this.#own.url).href
    await migrate(url)
    return { server: this.#own, url }
  }

  /** @returns this database as a server; an embedded file is none */
  asServer(): TestServer {
    return this.#asServer()
  }

  async play(url: string, play: Play = {}): Promise<RoundResult> {
    const folder = join(this.#folder, this.db.name)
    mkdirSync(folder, { recursive: true })
    const { keys, queued, workers, withinMs } = this.size
    const name = `${this.seed}-${++this.#rounds}`
    return playRound({ name, folder, seed: this.seed, url, keys, queued, workers, reapers: 1, withinMs, command: [process.execPath, await program(WORKER)], ...play, worker: { leaseMs: this.leaseMs, ...play.worker } })
  }

  close(): void {
    this.#own?.remove()
  }

  #asServer(): TestServer {
    if (this.db.name === 'sqlite') throw new Error('an embedded file is no server')
    return this.db as TestServer
  }
}

export const SERVERS: readonly ServerName[] = ['postgres', 'mariadb', 'mysql']

/** Who died by itself has left no word. */
export function countingDeaths(result: RoundResult): RoundResult {
  const ready = result.evidence.operations.filter(({ did }) => did === 'ready').length
  const ended = result.evidence.operations.filter(({ did }) => did === 'goodbye' || did === 'killed').length
  return { ...result, faults: result.faults + ready - ended }
}

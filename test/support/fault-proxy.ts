/**
 * A proxy in front of a database server that does to its clients what networks and dying servers do: it delays, swallows,
 * refuses and resets, and it can act on a single statement: lose it, lose its reply, or answer it with an error.
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { protocolOf, type Protocol, type Reply } from './wire-protocol.ts'

/** What happens to one statement; its connection is reset unless an error is to be answered. */
export interface Fault {
  /** What the server executes in its place: `null` for nothing, by default the statement as it is. */
  readonly execute?: string | null
  /** The error that comes back in place of the reply: an SQLSTATE of PostgreSQL, an error number of MySQL. */
  readonly error?: string
  /** How many bytes of the reply still come through before the connection is reset. Default 0. */
  readonly replyBytes?: number
}

/** The statement never reaches the server. */
export const NEVER_ARRIVES: Fault = { execute: null }
/** The server has executed the statement, and nobody hears of it. */
export const REPLY_LOST: Fault = {}

/** Where a server listens. */
export type Target = { readonly host: string; readonly port: number } | { readonly path: string }

export interface ProxyOptions {
  /** Where it listens itself: an address such as `::1`, or the path of a Unix socket. Default 127.0.0.1. */
  readonly on?: string
  /** The server, where the URL does not say it. */
  readonly target?: Target
}

/** Stands before the server at `url` until it is closed. */
export async function faultProxy(url: string, { on = '127.0.0.1', target }: ProxyOptions = {}): Promise<FaultProxy> {
  const proxy = new FaultProxy(url)
  if (target) proxy.target = target
  await proxy.listen(on)
  return proxy
}

export class FaultProxy {
  /**
   * `blackhole` keeps connections open and lets nothing through; `deaf` lets statements reach the server, but nothing comes
   * back, and a client that gives up leaves the server's end open; `refuse` resets new ones.
   */
  mode: 'up' | 'blackhole' | 'deaf' | 'refuse' = 'up'
  /** Each way. */
  latencyMs = 0
  /** As of a line that is full; each way. */
  bytesPerMs = Infinity
  /** Hears every statement and says what is to happen to it; undefined lets it pass. */
  onStatement: (text: string) => Fault | undefined = () => undefined
  /** Where new connections go: a fail-over moves it. */
  target: Target

  readonly #url: URL
  readonly #protocol: Protocol
  readonly #sockets = new Set<Socket>()
  readonly #server: Server

  constructor(url: string) {
    this.#url = new URL(url)
    this.#protocol = protocolOf(this.#url.protocol)
    this.target = { host: this.#url.hostname, port: Number(this.#url.port) }
    this.#server = createServer({ noDelay: true }, (client) => this.#accept(client))
  }

  async listen(on: string): Promise<void> {
    this.#server.listen(on.startsWith('/') ? { path: on } : { host: on, port: 0 })
    await once(this.#server, 'listening')
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** The URL of the same database, through the proxy. */
  get url(): string {
    const url = new URL(this.#url)
    url.port = String(this.port)
    url.searchParams.delete('host')
    return url.href
  }

  /** The next statements that match suffer the fault. @returns how many have */
  harm(pattern: RegExp, fault: Fault, times = 1): () => number {
    let harmed = 0
    this.onStatement = (text) => {
      if (harmed === times || !pattern.test(text)) return undefined
      harmed++
      return fault
    }
    return () => harmed
  }

  /** Resets every open connection now. */
  reset(): void {
    for (const socket of this.#sockets) cut(socket)
  }

  async close(): Promise<void> {
    this.reset()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #accept(client: Socket): void {
    client.on('error', () => {})
    if (this.mode === 'refuse') return cut(client)
    const server = connect({ ...this.target, noDelay: true })
    server.on('error', () => {})
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    }
    this.#relay(client, server)
  }

  #relay(client: Socket, server: Socket): void {
    const statements = this.#protocol.statements()
    let losing: Losing | undefined
    this.#pump(client, server, () => this.mode === 'blackhole', (bytes) => {
      for (const { text, bytes: sent } of statements(bytes)) {
        const fault = text === undefined ? undefined : this.onStatement(text)
        if (fault) losing = this.#harm(fault, text!, sent, client, server)
        else server.write(sent)
      }
    })
    this.#pump(server, client, () => this.mode === 'blackhole' || this.mode === 'deaf', (bytes) => {
      if (!losing) return void client.write(bytes)
      if (losing.isOver(bytes)) losing = losing.end()
    })
  }

  /** Both ways of one connection: in order, late, or not at all. */
  #pump(from: Socket, to: Socket, isLost: () => boolean, forward: (bytes: Buffer) => void): void {
    let before: Promise<unknown> = Promise.resolve()
    let waiting = 0
    const pass = (bytes: Buffer) => {
      waiting--
      if (!to.destroyed) forward(bytes)
    }
    from.on('data', (bytes: Buffer) => {
      if (isLost()) return
      const lateMs = this.latencyMs + bytes.length / this.bytesPerMs
      if (lateMs === 0 && waiting === 0) return forward(bytes)
      waiting++
      const late = sleep(lateMs)
      before = before.then(() => late).then(() => pass(bytes))
    })
    from.on('close', () => void before.then(() => this.mode === 'blackhole' || this.mode === 'deaf' || to.destroy()))
  }

  #harm({ execute, error, replyBytes = 0 }: Fault, text: string, sent: Buffer, client: Socket, server: Socket): Losing | undefined {
    const cutBoth = () => {
      cut(client)
      cut(server)
    }
    const answer = error === undefined ? cutBoth : () => void client.write(this.#protocol.error(error))
    if (execute === null) {
      answer()
      return undefined
    }
    server.write(execute === undefined || execute === text ? sent : this.#protocol.rewrite(sent, execute))
    return new Losing(this.#protocol.reply(), (reply) => {
      if (error === undefined && replyBytes > 0) client.write(reply.subarray(0, replyBytes), answer)
      else answer()
    })
  }
}

/** With a reset, where there is such a thing. */
function cut(socket: Socket): void {
  if (socket.remoteFamily === undefined) socket.destroy()
  else socket.resetAndDestroy()
}

/** Holds back the reply to one statement, so that what follows happens when the server is done with it. */
class Losing {
  readonly #reply: Reply
  readonly #then: (reply: Buffer) => void
  readonly #held: Buffer[] = []

  constructor(reply: Reply, then: (reply: Buffer) => void) {
    this.#reply = reply
    this.#then = then
  }

  isOver(bytes: Buffer): boolean {
    this.#held.push(bytes)
    return this.#reply(bytes)
  }

  end(): undefined {
    this.#then(Buffer.concat(this.#held))
  }
}

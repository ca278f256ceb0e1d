/**
 * A small payment service: an HTTP server with a store of its own that honours Idempotency-Key, as real ones do.
 *   node examples/payments/service.ts FILE      prints its URL; ends with SIGTERM
 *   POST /charges       {"customer": "c-1", "cents": 995}, with Idempotency-Key: charged once, the same answer every time
 *   GET  /charges/KEY   that charge, or 404: what somebody in doubt asks
 *   GET  /account       how many charges, and their sum in cents
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Charge {
  readonly id: number
  readonly idempotency_key: string
  readonly customer: string
  readonly cents: number
}

export interface PaymentService {
  readonly url: string
  close(): Promise<void>
}

/** @param latencyMs what a charge takes, before it is made and again before the answer: a real one comes over a network */
export async function startPaymentService(file: string, latencyMs = 0): Promise<PaymentService> {
  const db = new DatabaseSync(file)
  db.exec(`pragma journal_mode = wal;
    create table if not exists charges (id integer primary key, idempotency_key text not null unique, customer text not null, cents integer not null, asked integer not null default 1) strict`)
  const server = createServer((request, response) => {
    answer(db, request, response, latencyMs).catch((error: unknown) => reply(response, 500, { error: String(error) }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
      db.close()
    },
  }
}

async function answer(db: DatabaseSync, request: IncomingMessage, response: ServerResponse, latencyMs: number): Promise<void> {
  const { method, url = '/' } = request
  const asked = /^\/charges\/(.+)$/.exec(url)
  if (method === 'POST' && url === '/charges') return charge(db, request, response, latencyMs)
  if (method === 'GET' && asked) return find(db, decodeURIComponent(asked[1]!), response)
  if (method === 'GET' && url === '/account') return reply(response, 200, db.prepare('select count(*) as charges, coalesce(sum(cents), 0) as cents from charges').get())
  reply(response, 404, { error: 'no such thing' })
}

async function charge(db: DatabaseSync, request: IncomingMessage, response: ServerResponse, latencyMs: number): Promise<void> {
  const key = request.headers['idempotency-key']
  const { customer, cents } = JSON.parse(await text(request)) as { customer?: unknown; cents?: unknown }
  if (typeof key !== 'string' || typeof customer !== 'string' || !Number.isInteger(cents)) return reply(response, 400, { error: 'needs Idempotency-Key, customer and cents' })
  if (latencyMs > 0) await sleep(latencyMs)
  // One statement: the key is new and charged, or known and only counted.
  const row = db.prepare('insert into charges (idempotency_key, customer, cents) values (?, ?, ?) on conflict do update set asked = asked + 1 returning id, idempotency_key, customer, cents').get(key, customer, cents as number)
  const charged = row as unknown as Charge
  if (latencyMs > 0) await sleep(latencyMs)
  if (charged.customer !== customer || charged.cents !== cents) return reply(response, 409, { error: 'this key was used for another charge' })
  reply(response, 200, charged)
}

function find(db: DatabaseSync, key: string, response: ServerResponse): void {
  const row = db.prepare('select id, idempotency_key, customer, cents from charges where idempotency_key = ?').get(key)
  reply(response, row ? 200 : 404, row ?? { error: 'never charged' })
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

if (import.meta.main) {
  const service = await startPaymentService(process.argv[2] ?? ':memory:')
  process.stdout.write(`${service.url}\n`)
  process.on('SIGTERM', () => void service.close())
}

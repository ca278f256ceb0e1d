/** A server that ends a session in the very moment in which it has let it in. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { it } from 'node:test'
import { openLedger } from '../../src/index.ts'

const message = (type: string, body: Buffer) => Buffer.concat([Buffer.from(type), Buffer.from([0, 0, 0, body.length + 4]), body])
const WELCOME = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))])
const GOODBYE = message('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'))

it('a session that the server ends together with its welcome is a database that is away, and ends no process', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.concat([WELCOME, GOODBYE]))) // As one piece, so that both are read in one breath.
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())

  await assert.rejects(openLedger(`postgres://u@127.0.0.1:${(server.address() as AddressInfo).port}/d?sslmode=disable`, { connectTimeout: '300ms' }), { code: 'DATABASE_UNAVAILABLE' })
})

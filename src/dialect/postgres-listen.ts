/** LISTEN on a connection of its own: what it hears is a hint, and whenever it may have missed something it says so. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import type { Listener } from './dialect.ts'

/** One for all ledgers of a database; what is told on it is `schema.prefix.queue`, some 200 bytes at most. */
export const CHANNEL = 'runledger_queue'

const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 10_000
/** A connection that a NAT or a fail-over has cut in half says nothing; a question that is not answered ends it. */
const ASK_EVERY_MS = 30_000

/** Opens it again for as long as it is not closed; behind a pooler that forgets LISTEN it just hears nothing. */
export function listen(newClient: () => Client, space: string, heard: (queue: string | null) => void): Listener {
  const end = new AbortController()
  let client: Client | undefined

  async function once(): Promise<void> {
    client = newClient()
    const lost = new Promise<void>((resolve) => {
      client!.once('error', () => resolve())
      client!.once('end', () => resolve())
    })
    client.on('error', () => {}) // Said by `lost`; a later one has nothing to add.
    client.on('notification', ({ payload = '' }) => payload.startsWith(`${space}.`) && heard(payload.slice(space.length + 1)))
    await client.connect()
    await client.query(`listen ${CHANNEL}`)
    heard(null)
    while (!end.signal.aborted && (await Promise.race([lost.then(() => 'lost'), sleep(ASK_EVERY_MS, 'ask', { signal: end.signal, ref: false })])) === 'ask') await client.query('select 1')
  }

  async function loop(): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; !end.signal.aborted; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const begunAt = performance.now()
      await once().catch(() => {}) // The poll goes on meanwhile, and says what is wrong with the database.
      if (performance.now() - begunAt > LONGEST_PAUSE_MS) pause = FIRST_PAUSE_MS
      cut(client)
      await sleep(pause * (0.5 + Math.random() / 2), undefined, { signal: end.signal }).catch(() => {}) // Only the end rejects.
    }
  }

  const ended = loop()
  return {
    async close() {
      end.abort()
      cut(client)
      await ended
    },
  }
}

function cut(client: Client | undefined): void {
  const { connection } = (client ?? {}) as unknown as { connection?: { stream: { destroy(): void } } }
  connection?.stream.destroy()
}

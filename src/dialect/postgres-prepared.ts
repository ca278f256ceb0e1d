/** Statements that come again and again are parsed and planned once a connection, where nothing between us and the server forbids it. */
import type { PoolClient, QueryResult } from 'pg'

/** Begins the text of a statement that is worth it, and that is tried again when its connection has forgotten it. */
export const OFTEN = '/* often */'

/** A process that sends it less often than this gains nothing. */
const FIRST_TIMES = 5

/** The server does not know the name, or knows it already: a pooler changes servers between transactions. The statement did nothing. */
export const FORGOTTEN: readonly string[] = ['26000', '42P05']

type Send = (client: PoolClient, text: string, values: unknown[]) => Promise<QueryResult>

/** How to send the statements of one pool. At the first sign of a forgotten name they go without names, for good. */
export function preparing(): Send {
  const times = new Map<string, number>()
  const names = new Map<string, string>()
  let forgetful = false

  return async (client, text, values) => {
    if (forgetful || !text.startsWith(OFTEN)) return client.query(text, values)
    const name = names.get(text) ?? (await nameIfOften(text))
    if (name === undefined) return client.query(text, values)
    try {
      return await client.query({ name, text, values })
    } catch (error) {
      forgetful ||= FORGOTTEN.includes((error as { code?: string }).code ?? '')
      throw error
    }
  }

  async function nameIfOften(text: string): Promise<string | undefined> {
    const count = (times.get(text) ?? 0) + 1
    times.set(text, count)
    if (count <= FIRST_TIMES) return undefined
    // By its content: behind a pooler, another client's statement of the same name is then the same statement.
    const { createHash } = await import('node:crypto')
    const name = `runledger_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
    names.set(text, name)
    return name
  }
}

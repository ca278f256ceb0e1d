/** Named statements: worth it for the claim alone, and never in the way. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { PoolClient } from 'pg'
import { OFTEN, preparing } from '../../src/dialect/postgres-prepared.ts'

interface Sent {
  readonly name?: string
}

/** A connection that remembers how it was asked, and answers with an error once it is given one. */
function connection(): { sent: Sent[]; client: PoolClient; fail(code: string): void } {
  const sent: Sent[] = []
  let failure: { code: string } | undefined
  const query = async (asked: string | Sent) => {
    sent.push(typeof asked === 'string' ? {} : { name: asked.name! })
    if (failure && typeof asked !== 'string') throw Object.assign(new Error('no such statement'), failure)
  }
  return { sent, client: { query } as unknown as PoolClient, fail: (code) => void (failure = { code }) }
}

it('a statement gets a name once it has come often, the same for the same text', async () => {
  const { sent, client } = connection()
  const send = preparing()
  for (let n = 0; n < 8; n++) await send(client, `${OFTEN} select 1`, [])
  const names = sent.map(({ name }) => name)
  assert.deepEqual(names.slice(0, 5), Array(5).fill(undefined))
  assert.match(names[5]!, /^runledger_[0-9a-f]{32}$/)
  assert.deepEqual(names.slice(5), Array(3).fill(names[5]))
})

it('a statement that is not marked never gets one', async () => {
  const { sent, client } = connection()
  const send = preparing()
  for (let n = 0; n < 10; n++) await send(client, 'select 1', [])
  assert.deepEqual(sent, Array.from({ length: 10 }, () => ({})))
})

for (const code of ['26000', '42P05']) {
  it(`after ${code} the error rises and no statement of the pool has a name any more`, async () => {
    const { sent, client, fail } = connection()
    const send = preparing()
    for (let n = 0; n < 5; n++) await send(client, `${OFTEN} select 1`, [])
    fail(code)
    await assert.rejects(send(client, `${OFTEN} select 1`, []), { code })
    await send(client, `${OFTEN} select 1`, [])
    assert.deepEqual(sent.map(({ name }) => name !== undefined), [false, false, false, false, false, true, false])
  })
}

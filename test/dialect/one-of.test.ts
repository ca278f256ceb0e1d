/** Of several servers, which one is asked next. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OneOf } from '../../src/dialect/one-of.ts'

const gone = new Error('gone')
const refused = new Error('wrong password')

describe('one of several servers', () => {
  /** @returns who was asked, in order, and the outcome of one call after the other */
  async function ask(answers: readonly Record<string, Error | undefined>[]): Promise<{ asked: string; outcomes: unknown[] }> {
    const servers = new OneOf(['a', 'b', 'c'], (error) => (error === gone ? 'it is gone' : undefined))
    let asked = ''
    const outcomes: unknown[] = []
    for (const answer of answers) {
      outcomes.push(await servers.reach(async (server) => {
        asked += server
        const error = answer[server]
        if (error) throw error
        return server
      }).catch((error: unknown) => error))
    }
    return { asked, outcomes }
  }

  it('case 61: the first that takes us is asked first from then on, and the next ones when it does so no more', async () => {
    assert.deepEqual(await ask([{ a: gone }, {}, { b: gone, c: gone }, {}]), { asked: 'abbbcaa', outcomes: ['b', 'b', 'a', 'a'] })
  })

  it('when none can be reached, each was asked once', async () => {
    assert.deepEqual(await ask([{ a: gone, b: gone, c: gone }]), { asked: 'abc', outcomes: [gone] })
  })

  it('a password that one refuses is not tried on the others', async () => {
    assert.deepEqual(await ask([{ a: gone, b: refused }]), { asked: 'ab', outcomes: [refused] })
  })
})

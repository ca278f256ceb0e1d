/** What a worker says of its database, and when it says it again. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Health } from '../../../src/runtime/worker/health.ts'

function listening(): { health: Health; said: string[]; fails(problem: string, proves?: 'read' | 'write'): Promise<void>; answers(proves?: 'read' | 'write'): Promise<void> } {
  const said: string[] = []
  const health = new Health((state, problem) => said.push(problem === null ? state : `${state}: ${problem}`))
  return {
    health,
    said,
    fails: (problem, proves) => assert.rejects(health.ask(() => Promise.reject(new Error(problem)), proves)),
    answers: (proves) => health.ask(async () => {}, proves),
  }
}

it('a problem is said once, again when it has become another one, and so is its end', async () => {
  const { said, fails, answers } = listening()
  await answers()
  for (const problem of ['cut off', 'cut off', 'read-only', 'read-only']) await fails(problem)
  await answers()
  await answers()
  await fails('cut off')
  assert.deepEqual(said, ['connected', 'degraded: Error: cut off', 'degraded: Error: read-only', 'connected', 'degraded: Error: cut off'])
})

it('an answer to a question that only reads does not end a problem with writing', async () => {
  const { health, said, fails, answers } = listening()
  await answers()
  await fails('read-only')
  await answers('read')
  assert.deepEqual([health.state, said.at(-1)], ['degraded', 'degraded: Error: read-only'])
  await answers()
  assert.deepEqual([health.state, said.at(-1)], ['connected', 'connected'])
})

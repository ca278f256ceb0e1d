/** A database that does not answer is asked again for as long as the caller has patience, and "I do not know" is neither yes nor no. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Diagnosis } from '../../src/dialect/dialect.ts'
import { isLedgerError, LedgerError } from '../../src/model/errors.ts'
import { settle } from '../../src/runtime/settle.ts'

const diagnoses: Record<string, Diagnosis> = {
  cut: { kind: 'unavailable', problem: 'the connection was cut' },
  locked: { kind: 'transient' },
  password: { kind: 'refused', problem: 'the server refused this password' },
  key: { kind: 'duplicate', constraint: 'primary' },
  table: { kind: 'no_table' },
}
const store = { place: 'Testbase at nowhere', diagnose: (error: unknown) => diagnoses[(error as Error).message] ?? { kind: 'other' as const } }

/** Fails with each of these in turn, then answers; `told` is what it was told about earlier attempts. */
function failing(...problems: string[]) {
  const told: boolean[] = []
  const attempt = async (uncertain: boolean) => {
    told.push(uncertain)
    const problem = problems.shift()
    if (problem !== undefined) throw new Error(problem)
    return 'answer'
  }
  return { told, attempt }
}

describe('settle', () => {
  it('returns the answer, and tells the first attempt that none was before', async () => {
    const { told, attempt } = failing()
    assert.equal(await settle(store, 0, attempt), 'answer')
    assert.deepEqual(told, [false])
  })

  it('asks again after a cut connection, and tells the attempt that an earlier one may have taken effect', async () => {
    const { told, attempt } = failing('cut', 'cut')
    assert.equal(await settle(store, 10_000, attempt), 'answer')
    assert.deepEqual(told, [false, true, true])
  })

  it('asks again when the database stayed locked', async () => {
    const { attempt } = failing('locked')
    assert.equal(await settle(store, 10_000, attempt), 'answer')
  })

  it('asks again when the attempt itself says the database is unavailable', async () => {
    let left = 1
    const attempt = async () => {
      if (left-- > 0) throw new LedgerError('DATABASE_UNAVAILABLE', 'not yet')
      return 'answer'
    }
    assert.equal(await settle(store, 10_000, attempt), 'answer')
  })

  it('gives up when patience is over, with the place, the problem and the driver’s error', async () => {
    const { told, attempt } = failing(...Array<string>(50).fill('cut'))
    const start = performance.now()
    await assert.rejects(settle(store, 400, attempt), (error: Error) => {
      assert.ok(isLedgerError(error) && error.code === 'DATABASE_UNAVAILABLE')
      assert.equal(error.message, 'DATABASE_UNAVAILABLE: Testbase at nowhere: the connection was cut')
      return (error.cause as Error).message === 'cut'
    })
    assert.ok(performance.now() - start < 2000 && told.length > 1, `${told.length} attempts`)
  })

  it('without patience asks once', async () => {
    const { told, attempt } = failing('cut')
    await assert.rejects(settle(store, 0, attempt), { code: 'DATABASE_UNAVAILABLE' })
    assert.equal(told.length, 1)
  })

  it('a server that said no is not asked again', async () => {
    const { told, attempt } = failing('password')
    await assert.rejects(settle(store, 10_000, attempt), { code: 'DATABASE_UNAVAILABLE', message: /refused this password/ })
    assert.equal(told.length, 1)
  })

  for (const problem of ['key', 'table', 'a bug']) {
    it(`any other error rises as it is: ${problem}`, async () => {
      const { told, attempt } = failing(problem)
      await assert.rejects(settle(store, 10_000, attempt), (error: Error) => error.message === problem && !isLedgerError(error))
      assert.equal(told.length, 1)
    })
  }
})

/** Many rows are read a page at a time, each once, however many share an instant and whatever goes meanwhile. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { pagesByInstant } from '../../src/store/pages.ts'

/** A row has microseconds; what is seen of its instant are milliseconds. */
interface Row {
  readonly id: string
  readonly us: number
}

it('each row once, in order, in pages of any size, while read rows are taken away', async () => {
  const instants = fc.array(fc.integer({ min: 0, max: 6000 }), { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(instants, fc.integer({ min: 1, max: 7 }), fc.func(fc.boolean()), async (all, size, goes) => {
      let rows: Row[] = all.toSorted((a, b) => a - b).map((us, nth) => ({ id: String(nth), us }))
      const whole = rows.map(({ id }) => id)
      const pages: string[][] = []
      const read = async (from: Date | null, limit: number) => rows.filter(({ us }) => from === null || us / 1000 >= from.getTime()).slice(0, limit)
      for await (const page of pagesByInstant(size, read, ({ id, us }) => ({ id, at: new Date(Math.floor(us / 1000)) }))) {
        pages.push(page.map(({ id }) => id))
        rows = rows.filter((row) => !page.includes(row) || !goes(row.id))
      }
      assert.deepEqual(pages.flat(), whole)
      assert.ok(pages.every((page) => page.length <= size + whole.length))
    }),
    { numRuns: 300 },
  )
})

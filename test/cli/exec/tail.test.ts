/** The ring that keeps the end of a job's output. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { startTail } from '../../../src/cli/exec/tail.ts'

describe('tail', () => {
  it('holds the last bytes of whatever came, in the order it came', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.integer({ min: 0, max: 50 }), (chunks, size) => {
        const tail = startTail(size)
        for (const chunk of chunks) tail.add(chunk)
        const all = Buffer.concat(chunks)
        assert.deepEqual(tail.contents(), all.subarray(Math.max(0, all.length - size)))
        assert.equal(tail.total, all.length)
      }),
    )
  })

  it('copies: a buffer that is used again does not change it', () => {
    const tail = startTail(3)
    const chunk = Buffer.from('abc')
    tail.add(chunk)
    chunk.fill('x')
    const contents = tail.contents()
    tail.add(Buffer.from('d'))
    assert.equal(String(contents), 'abc')
    assert.equal(String(tail.contents()), 'bcd')
  })
})

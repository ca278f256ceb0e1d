/** Text that every database takes: cleaned, bounded in bytes, on a character's boundary. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { asciiText, bmpText, boundText } from '../../src/model/text.ts'

const sides = ['head', 'tail'] as const
const MARKER = /\[… \d+ bytes cut\]/

describe('boundText', () => {
  it('leaves text alone that is clean and short enough', () => {
    for (const keep of sides) assert.equal(boundText('naïve 💥\tline\r\n', 100, keep), 'naïve 💥\tline\r\n')
  })

  it('case 48: broken UTF-8 becomes U+FFFD, and the rest stays', () => {
    const bytes = Buffer.concat([Buffer.from('💥 café '), Buffer.from([0xff, 0xfe])])
    assert.equal(boundText(bytes, 100, 'tail'), '💥 café ��')
  })

  it('NUL and escape sequences become visible, tab and line ends stay', () => {
    assert.equal(boundText('a\0b\x1b[31mred\x7f\x85\t\r\n', 100, 'head'), 'a␀b␛[31mred␡�\t\r\n')
  })

  it('a lone surrogate becomes U+FFFD, a pair stays', () => {
    assert.equal(boundText('\ud83d | \udca5 | \ud83d\udca5', 100, 'head'), '� | � | 💥')
  })

  it('keeps a byte order mark, which is a character like others', () => {
    assert.equal(boundText(Buffer.from('\ufeffx'), 10, 'head'), '\ufeffx')
  })

  it('says how many bytes it cut, and fits the bound with that', () => {
    assert.equal(boundText('x'.repeat(1000), 40, 'head'), `${'x'.repeat(20)}[… 980 bytes cut]`)
    assert.equal(boundText('x'.repeat(1000), 40, 'tail'), `[… 980 bytes cut]${'x'.repeat(20)}`)
  })

  it('a bound too small for the marker still holds', () => {
    for (const keep of sides) assert.equal(boundText('x'.repeat(1000), 5, keep), 'xxxxx')
    for (const keep of sides) assert.equal(boundText('xyz', 0, keep), '')
  })

  it('never splits a character, and shows no debris of one at the cut', () => {
    for (let bytes = 30; bytes < 60; bytes++) {
      for (const keep of sides) {
        for (const input of ['💥'.repeat(100), Buffer.from('💥'.repeat(100)), 'é漢'.repeat(100), Buffer.from('é漢'.repeat(100))]) {
          assert.doesNotMatch(boundText(input, bytes, keep), /�/, `${bytes} ${keep}`)
        }
      }
    }
  })

  it('any input comes out well-formed, without controls, within the bound, and the same when bounded again', () => {
    const anything = fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.uint8Array({ maxLength: 300 }), fc.array(fc.integer({ max: 0xffff, min: 0 })).map((units) => String.fromCharCode(...units)))
    fc.assert(
      fc.property(anything, fc.integer({ min: 0, max: 200 }), fc.constantFrom(...sides), (input, maxBytes, keep) => {
        const text = boundText(input, maxBytes, keep)
        assert.ok(Buffer.byteLength(text) <= maxBytes)
        assert.ok(text.isWellFormed())
        assert.doesNotMatch(text, /[^\P{Cc}\t\n\r]/u)
        assert.equal(boundText(text, maxBytes, keep), text)
        const whole = boundText(input, 10_000, keep)
        const shown = text.replace(MARKER, '')
        assert.ok(keep === 'head' ? whole.startsWith(shown) || MARKER.test(whole) : whole.endsWith(shown) || MARKER.test(whole))
      }),
      { numRuns: 2000 },
    )
  })

  it('case 49: 20 MB are bounded without being copied', () => {
    const huge = Buffer.from('💥é'.repeat(3_500_000)).toString() // flat, as a driver's or a parser's message is
    const before = process.memoryUsage().rss
    const start = performance.now()
    const texts = sides.map((keep) => boundText(huge, 16_384, keep))
    const ms = performance.now() - start
    for (const text of texts) assert.ok(Buffer.byteLength(text) <= 16_384 && Buffer.byteLength(text) > 16_300, text.slice(0, 40))
    assert.ok(process.memoryUsage().rss - before < 30 << 20, 'less than one copy')
    assert.ok(ms < 1000, `${ms} ms`)
  })
})

describe('last resorts', () => {
  it('case 48: bmpText is what a utf8mb3 column takes', () => {
    assert.equal(bmpText('💥 café \ud83d'), '� café �')
  })

  it('asciiText is what any column takes', () => {
    assert.equal(asciiText('💥 café �\n'), '? caf? ?\n')
  })

  it('neither is ever longer in bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        for (const made of [bmpText(text), asciiText(text)]) assert.ok(Buffer.byteLength(made) <= Buffer.byteLength(text))
        assert.match(asciiText(text), /^\p{ASCII}*$/u)
        assert.doesNotMatch(bmpText(text), /[\u{10000}-\u{10ffff}]/u)
      }),
    )
  })
})

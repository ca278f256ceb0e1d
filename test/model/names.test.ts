/** Task names and keys: the same ones accepted on every database, because they are decided before any. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { checkKey, checkTaskName, taskKey } from '../../src/model/names.ts'

const refused = { code: 'INVALID_OPTION' }

describe('task names', () => {
  for (const name of ['a', 'daily_news', 'import/csv', 'v1.2-beta', '2026', 'x'.repeat(100), '-', '..', '__proto__']) {
    it(`${JSON.stringify(name.slice(0, 20))} (${name.length}) is accepted as it is`, () => assert.equal(checkTaskName(name), name))
  }
  for (const name of ['', ' ', 'a b', 'a\n', 'a:b', 'näme', 'a\\b', 'a"b', "a'b", 'a;b', '💥', 'a\0', 'x'.repeat(101), 'a,b', 'a%b']) {
    it(`${JSON.stringify(name.slice(0, 20))} (${name.length}) is refused`, () => assert.throws(() => checkTaskName(name), { ...refused, message: /^INVALID_OPTION: task: / }))
  }
})

describe('keys', () => {
  for (const key of ['a', 'a b', '2026-09-20-18:00', '2026-11-01-01:30-04:00', 'café', '💥', 'a"\'\\`;--', 'x'.repeat(200), '💥'.repeat(200)]) {
    it(`${JSON.stringify(key.slice(0, 24))} (${key.length}) is accepted as it is`, () => assert.equal(checkKey('key', key), key))
  }
  const wrong: [string, string][] = [
    ['nothing', ''], ['a space before', ' a'], ['a space after', 'a '], ['a no-break space after', 'a\u00a0'], ['a wide space before', '\u3000a'], ['a byte order mark before', '\ufeffa'],
    ['a line feed', 'a\nb'], ['a carriage return', 'a\rb'], ['a tab', 'a\tb'], ['NUL', 'a\0b'], ['ESC', 'a\x1bb'], ['DEL', 'a\x7fb'], ['a C1 control', 'a\x85b'], ['a line separator', 'a\u2028b'], ['a paragraph separator', 'a\u2029b'],
    ['a lone surrogate', 'a\ud83d'], ['a lone low surrogate', '\udca5a'], ['201 characters', 'x'.repeat(201)], ['201 emoji', '💥'.repeat(201)],
  ]
  for (const [what, key] of wrong) {
    it(`${what} is refused`, () => assert.throws(() => checkKey('key', key), { ...refused, message: /^INVALID_OPTION: key: / }))
  }

  it('length is counted in characters, as databases count, not in UTF-16 units or bytes', () => {
    assert.equal(checkKey('key', '💥'.repeat(200)).length, 400)
  })

  it('no refusal repeats a key of any length', () => {
    assert.throws(() => checkKey('key', 'x'.repeat(1_000_000)), (error: Error) => error.message.length < 200)
    assert.throws(() => checkTaskName('x'.repeat(1_000_000)), (error: Error) => error.message.length < 200)
  })

  it('a task and a label make the key of the run, which has to fit as a whole', () => {
    assert.equal(taskKey('daily_news', '2026-09-20-18:00'), 'daily_news:2026-09-20-18:00')
    assert.equal(taskKey('t', 'x'.repeat(198)).length, 200)
    assert.throws(() => taskKey('t', 'x'.repeat(199)), refused)
    assert.throws(() => taskKey('a b', 'x'), refused)
    assert.throws(() => taskKey('t', 'x\n'), refused)
  })

  it('two different pairs never make one key: a task name has no colon', () => {
    const name = fc.string({ unit: fc.constantFrom('a', 'b', '.', '/', '-', '_', '1'), minLength: 1, maxLength: 5 })
    const label = fc.string({ unit: fc.constantFrom('a', 'b', ':', '1'), minLength: 1, maxLength: 5 })
    fc.assert(fc.property(name, label, name, label, (task, one, other, two) => assert.equal(taskKey(task, one) === taskKey(other, two), task === other && one === two)))
  })

  it('every key is either refused or well-formed, printable and within its length', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 30 }), (key) => {
        try {
          checkKey('key', key)
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'INVALID_OPTION')
          return
        }
        assert.ok(key.isWellFormed() && key === key.trim() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(key))
      }),
      { numRuns: 2000 },
    )
  })
})

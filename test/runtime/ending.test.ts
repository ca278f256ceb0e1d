/** Texts of an ended attempt: bounded, cleaned, and ever plainer for a column that refuses them. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { boundedEnding, ERROR_BYTES, errorText, OUTPUT_TAIL_BYTES, plainerEndings } from '../../src/runtime/ending.ts'

describe('ending', () => {
  it('an error keeps its head, output keeps its tail', () => {
    const { error, outputTail } = boundedEnding({ error: `first ${'x'.repeat(ERROR_BYTES)}`, outputTail: `${'x'.repeat(OUTPUT_TAIL_BYTES)} last` })
    assert.match(error!, /^first x+\[… \d+ bytes cut\]$/)
    assert.match(outputTail!, /^\[… \d+ bytes cut\]x+ last$/)
    assert.ok(Buffer.byteLength(error!) <= ERROR_BYTES && Buffer.byteLength(outputTail!) <= OUTPUT_TAIL_BYTES)
  })

  it('what was not said stays unsaid', () => {
    assert.deepEqual(boundedEnding({}), { exitCode: null, error: null, outputTail: null })
    for (const form of plainerEndings(boundedEnding({ exitCode: 3 }))) assert.deepEqual([form.exitCode, form.error ?? null, form.outputTail ?? null], [3, null, null])
  })

  it('case 48: the forms go from the text itself over three bytes a character and ASCII to no text, and keep the exit code', () => {
    const forms = plainerEndings({ exitCode: 3, error: '💥 café', outputTail: 'naïve 💥' })
    assert.deepEqual(forms, [
      { exitCode: 3, error: '💥 café', outputTail: 'naïve 💥' },
      { exitCode: 3, error: '� café', outputTail: 'naïve �' },
      { exitCode: 3, error: '? caf?', outputTail: 'na?ve ?' },
      { exitCode: 3 },
    ])
  })

  it('an error is told with its stack and its cause, anything else as JavaScript prints it', () => {
    assert.match(errorText(new TypeError('no', { cause: new Error('why') })), /^TypeError: no\n +at [^]*\ncaused by: why$/)
    assert.equal(errorText(Object.assign(new Error('no stack'), { stack: undefined })), 'Error: no stack')
    assert.equal(errorText('plain'), 'plain')
    assert.equal(errorText({ code: 7 }), '{ code: 7 }')
    assert.equal(errorText(undefined), 'undefined')
  })

  it('what throws when it is read is told all the same', () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    assert.match(errorText(proxy), /cannot be shown/)
  })
})

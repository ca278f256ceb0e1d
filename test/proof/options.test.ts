/** Wrong words at the scripts of the proof: one line that says which, exit 64, and nothing is started. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { bundleProgram } from '../../scripts/proof/programs.ts'
import { newFolder } from '../support/cli.ts'

describe('words of scripts/prove', () => {
  const folder = newFolder()
  let prove: string
  before(async () => {
    prove = await bundleProgram(join(folder, 'prove'), 'scripts/proof/prove.ts')
  })

  function run(words: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    return new Promise((resolve) => execFile(process.execPath, [prove, ...words], (error, stdout, stderr) => resolve({ code: Number(error?.code ?? 0), stdout, stderr })))
  }

  it('--help says what there is, with every fault', async () => {
    const { code, stdout, stderr } = await run(['--help'])
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /^usage: scripts\/prove .*--only +none kill .* mix\n/s)
  })

  for (const words of [['--bogus'], ['word'], ['--runs', 'x'], ['--keys', '0'], ['--seed', '-1'], ['--only', 'kill nope'], ['--db', 'oracle'], ['--trials']]) {
    it(`${words.join(' ')} is refused in one line`, async () => {
      const { code, stdout, stderr } = await run(words)
      assert.deepEqual([code, stdout], [64, ''])
      assert.match(stderr, /^scripts\/prove: [^\n]+\n$/)
    })
  }
})

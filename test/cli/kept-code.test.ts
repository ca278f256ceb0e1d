/** The code that a run keeps for the next start: it makes that one faster, and nothing else. */
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { TestContext } from 'node:test'
import { embeddedLedger, newFolder } from '../support/cli.ts'

const isRoot = process.getuid?.() === 0
/** Root keeps it in /var/cache, whatever the environment says. */
const ROOTS = 'mount --bind "$CACHE" /var/cache && exec "$@"'

describe('kept code', () => {
  const ledger = embeddedLedger()

  function cacheOf(t: TestContext) {
    const base = newFolder(t)
    chmodSync(base, 0o755)
    const folder = join(base, 'runledger')
    const options = { env: { XDG_CACHE_HOME: base, CACHE: base }, under: isRoot ? ['unshare', '--mount', 'sh', '-c', ROOTS, 'sh'] : [] }
    const exec = () => ledger.run(['exec', '--task', 'a', '--', 'echo', 'done'], options)
    const files = () => readdirSync(folder).filter((name) => /^exec-.*-exec$/.test(name)).map((name) => join(folder, name))
    return { base, folder, exec, files }
  }

  it('the first run keeps it, for its user alone', async (t) => {
    const { folder, exec, files } = cacheOf(t)
    const { code, stdout } = await exec()
    const [file = ''] = files()
    assert.deepEqual([code, stdout], [0, 'done\n'])
    assert.deepEqual([statSync(folder).mode & 0o777, statSync(file).mode & 0o777], [0o700, 0o600])
    assert.ok(statSync(file).size > 100_000)
  })

  it('the next ones start with it, and have no reason to make another', async (t) => {
    const { exec, files } = cacheOf(t)
    await exec()
    const left = new Set<number>()
    // One in eight looks whether it can add something: not each of these.
    for (let run = 0; run < 5; run++) {
      left.add(statSync(files()[0]!).mtimeMs)
      assert.deepEqual((await exec()).stdout, 'done\n')
    }
    assert.ok(left.size < 5, 'each of five runs made it anew')
  })

  it('what is damaged is not used, and is made anew', async (t) => {
    const { exec, files } = cacheOf(t)
    await exec()
    const [file = ''] = files()
    writeFileSync(file, readFileSync(file).subarray(0, 1000).fill(7))
    const { code, stdout, stderr } = await exec()
    assert.deepEqual([code, stdout], [0, 'done\n'])
    assert.doesNotMatch(stderr, /cache|reject/i)
    assert.ok(statSync(file).size > 100_000)
  })

  it('a folder that others may write to is not used', async (t) => {
    const { folder, exec } = cacheOf(t)
    mkdirSync(folder)
    chmodSync(folder, 0o777)
    assert.equal((await exec()).code, 0)
    assert.deepEqual(readdirSync(folder), [])
  })

  it('nor is one that others may replace', async (t) => {
    const { base, folder, exec } = cacheOf(t)
    mkdirSync(folder, { mode: 0o700 })
    chmodSync(base, 0o777)
    assert.equal((await exec()).code, 0)
    assert.deepEqual(readdirSync(folder), [])
  })

  it('nor is a link', async (t) => {
    const { base, folder, exec } = cacheOf(t)
    const elsewhere = join(base, 'elsewhere')
    mkdirSync(elsewhere, { mode: 0o700 })
    symlinkSync(elsewhere, folder)
    assert.equal((await exec()).code, 0)
    assert.deepEqual(readdirSync(elsewhere), [])
  })

  it('without a place for it a run does as well', async (t) => {
    const { folder, exec } = cacheOf(t)
    writeFileSync(folder, 'a file in its place')
    const { code, stdout } = await exec()
    assert.deepEqual([code, stdout], [0, 'done\n'])
  })
})

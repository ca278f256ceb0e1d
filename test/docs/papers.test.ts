/** README, docs/errors.md, CHANGELOG and the quickstart tell the truth of this commit. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ERROR_CODES } from '../../src/model/errors.ts'
import { CONFLICT_REASONS, OVERLAP_POLICIES } from '../../src/model/outcome.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(`${root}/${path}`, 'utf8')
const README = read('README.md')

it('docs/errors.md describes every code of the catalogue, in its order, and no other', () => {
  assert.deepEqual([...read('docs/errors.md').matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, code]) => code), [...ERROR_CODES])
})

it('the README has at most 200 lines', () => {
  assert.ok(README.trimEnd().split('\n').length <= 200)
})

it('the README names every conflict reason and every overlap policy', () => {
  for (const word of [...CONFLICT_REASONS, ...OVERLAP_POLICIES]) assert.match(README, new RegExp(`\`${word}\``), word)
})

it('every file that the papers point to is there', () => {
  for (const paper of ['README.md', 'docs/operators.md', 'docs/errors.md', 'docs/high-availability.md']) {
    for (const [, target] of read(paper).matchAll(/\]\((?!https?:)([^)#]+)/g)) assert.doesNotThrow(() => read(paper.includes('/') ? `docs/${target}` : target!), `${paper} -> ${target}`)
  }
  for (const [, path] of README.matchAll(/`((?:src|scripts|docs)\/[\w./-]+)/g)) assert.doesNotThrow(() => read(path!), path)
})

it('every runledger command in the README is accepted by the command line', () => {
  const commands = [...README.matchAll(/^(?:\* \* \* \* \* )?(runledger (\w+)[^#\n]*)/gm)]
  assert.ok(commands.length >= 8)
  for (const [command, lines] of Map.groupBy(commands, ([, , command]) => command!)) {
    const help = spawnSync(process.execPath, [`${root}/src/cli/main.ts`, command, '--help'], { encoding: 'utf8' })
    assert.equal(help.status, 0, command)
    for (const [, line] of lines) {
      for (const [flag] of line!.split(' -- ')[0]!.matchAll(/--[a-z][a-z-]+/g)) assert.match(help.stdout, new RegExp(`${flag}\\b`), `${flag} in: ${line}`)
    }
  }
})

it('the quickstart tells its story in at most 40 lines and leaves nothing running', () => {
  const { status, stdout, stderr } = spawnSync(`${root}/scripts/quickstart`, { encoding: 'utf8', env: { ...process.env, RUNLEDGER_LAUNCHER: 'quickstart-test' } })
  assert.equal(status, 0, stderr)
  assert.ok(stdout.trimEnd().split('\n').length <= 40)
  assert.match(stdout, /reason=held/)
  assert.match(stdout, /reason=done/)
  assert.match(stdout, /attempt 1 {3}lost/)
  assert.match(stdout, /attempt=2 fence=3 status=completed/)
  const left = spawnSync('ps', ['-eo', 'stat,args'], { encoding: 'utf8' }).stdout.split('\n').filter((line) => !line.startsWith('Z') && /disk-report\.sh|runledger-quickstart/.test(line))
  assert.deepEqual(left, [])
})

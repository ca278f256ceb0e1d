/** Commands are found as a shell finds them, before anything is claimed. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { findCommand } from '../../../src/cli/exec/find-command.ts'

const folder = mkdtempSync(join(tmpdir(), 'find-command-'))
after(() => rmSync(folder, { recursive: true }))

function file(name: string, mode: number, text = '#!/bin/sh\nexit 0\n'): string {
  const path = join(folder, name)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

const plain = file('plain', 0o644)
const tool = file('bin/tool', 0o755)
file('early/tool', 0o644)
mkdirSync(join(folder, 'folders/tool'), { recursive: true })
file('crlf', 0o755, '#!/bin/sh\r\nexit 0\r\n')
file('elsewhere/up', 0o755)
mkdirSync(join(folder, 'elsewhere/deep'), { recursive: true })
symlinkSync(join(folder, 'elsewhere/deep'), join(folder, 'link'))

/** Command, PATH, and what is expected: a path or an exit code. */
const rows: [string, string, string | number][] = [
  ['tool', 'bin', join(folder, 'bin/tool')],
  ['tool', 'early:bin', join(folder, 'bin/tool')],
  ['tool', 'nowhere:folders:bin', join(folder, 'bin/tool')],
  ['tool', 'plain:bin', join(folder, 'bin/tool')],
  ['tool', 'early', 126],
  ['tool', 'folders', 126],
  ['tool', 'nowhere', 127],
  ['tool', '', 127],
  ['./bin/tool', '', join(folder, './bin/tool')],
  ['bin/tool', '', join(folder, 'bin/tool')],
  [tool, '', tool],
  ['link/../up', '', join(folder, 'elsewhere/up')],
  ['./plain', '', 126],
  [plain, '', 126],
  ['./bin', '', 126],
  ['./nothing', '', 127],
  ['./plain/x', '', 127],
  ['./crlf', '', 127],
]

describe('find-command', () => {
  for (const [command, path, expected] of rows) {
    it(`${command.replace(folder, '…')} with PATH=${path} is ${String(expected).replace(folder, '…')}`, () => {
      const absolute = path.split(':').map((entry) => (entry === '' ? '' : join(folder, entry))).join(':')
      const found = findCommand(command, { PATH: absolute }, folder)
      const sh = spawnSync('/bin/sh', ['-c', '"$0"', command], { cwd: folder, env: { PATH: absolute } })
      if (typeof expected === 'number') {
        assert.ok('problem' in found)
        assert.equal(found.exitCode, expected)
        assert.ok(found.problem.startsWith(`${command}: `), found.problem)
        if (expected === 127 || command.includes('/')) assert.equal(sh.status, expected) // sh differs in PATH: dash 127, bash 126
      } else {
        assert.ok('path' in found, JSON.stringify(found))
        assert.equal(spawnSync(found.path).status, 0)
        if (!expected.includes('elsewhere')) assert.equal(join(found.path), expected)
        assert.equal(sh.status, 0)
      }
    })
  }

  it('an empty entry in PATH is the working directory', () => {
    const found = findCommand('tool', { PATH: '/nowhere:' }, join(folder, 'bin'))
    assert.equal('path' in found && join(found.path), tool)
  })

  it('without PATH the usual places are searched', () => {
    assert.ok('path' in findCommand('sh', {}, '/'))
  })

  it('an empty command is not found', () => {
    assert.deepEqual(findCommand('', { PATH: '/bin' }, '/'), { exitCode: 127, problem: 'the command is empty' })
  })

  it('names the interpreter that is missing, its carriage return included', () => {
    const found = findCommand('./crlf', {}, folder)
    assert.match('problem' in found ? found.problem : '', /interpreter "\/bin\/sh\\r" was not found/)
  })
})

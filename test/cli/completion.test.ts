/** Shell completion knows every command and every flag, for it is made of their tables. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import { newFolder, run } from '../support/cli.ts'

describe('runledger completion', () => {
  const folder = newFolder()
  const script = join(folder, 'runledger.bash')
  before(async () => {
    const { code, stdout, stderr } = await run(['completion', 'bash'])
    assert.deepEqual([code, stderr], [0, ''])
    writeFileSync(script, stdout)
  })

  /** What bash offers for the last of these words. */
  function offered(...words: string[]): string[] {
    const text = execFileSync('bash', ['-c', 'source "$1"; shift; COMP_WORDS=(runledger "$@"); COMP_CWORD=$#; _runledger; printf "%s\\n" "${COMPREPLY[@]}"', 'bash', script, ...words], { encoding: 'utf8', cwd: folder })
    return text.split('\n').filter(Boolean)
  }

  it('bash completes the commands', () => {
    assert.deepEqual(offered(''), [...Object.keys(COMMANDS), '--help', '--version'])
    assert.deepEqual([offered('ex'), offered('effect'), offered('nothing-like-it')], [['exec'], ['effect', 'effects'], []])
  })

  it('bash completes the flags of each command, its own and those of all', async () => {
    for (const [name, { load }] of Object.entries(COMMANDS)) {
      const own = Object.keys((await load()).options).map((flag) => `--${flag}`)
      assert.deepEqual(offered(name, '--').slice(0, own.length), own, name)
      assert.ok(offered(name, '--').includes('--connect-timeout'), name)
    }
    assert.deepEqual(offered('prune', '--task', 'x', '--keep'), ['--keep-failed'])
  })

  it('bash completes files as values, and a command of its own after --', () => {
    assert.deepEqual(offered('exec', '--task', 'runl'), ['runledger.bash'])
    assert.ok(offered('exec', '--task', 'x', '--', 'bas').includes('bash'))
    assert.deepEqual(offered('exec', '--', 'cat', 'runl'), ['runledger.bash'])
  })

  it('zsh is given the same commands and flags, and other shells a clear no', async () => {
    const { stdout } = await run(['completion', 'zsh'])
    assert.match(stdout, /^#compdef runledger\n/)
    for (const [name, { summary, load }] of Object.entries(COMMANDS)) {
      assert.ok(stdout.includes(`'${name}:${summary.replaceAll("'", `'\\''`)}'`), name)
      const [, flags = ''] = new RegExp(`^ {4}${name}\\) flags=\\((.*)\\) ;;$`, 'm').exec(stdout) ?? []
      for (const flag of Object.keys((await load()).options)) assert.ok(flags.split(' ').includes(`--${flag}`), `${name} --${flag}`)
    }
    for (const words of [[], ['fish'], ['bash', 'zsh']]) assert.equal((await run(['completion', ...words])).code, 64)
  })
})

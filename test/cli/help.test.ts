/** What the command line says about itself is what it does. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import { run } from '../support/cli.ts'

const COMMON = ['db', 'connect-timeout', 'json', 'log-format', 'help', 'version']

/** `  name      summary` of every command in the overview. */
async function listed(): Promise<Map<string, string>> {
  const { stdout } = await run(['--help'])
  return new Map([...stdout.matchAll(/^ {2}([a-z]+) {2,}(\S.*)$/gm)].map(([, name = '', summary = '']) => [name, summary]))
}

async function isFlagOfAnother(flag: string, help: string): Promise<boolean> {
  for (const [name, { load }] of Object.entries(COMMANDS)) {
    if (flag in (await load()).options && new RegExp(`\\b${name}\\b[^\\n]*\\n?[^\\n]*--${flag}\\b`).test(help)) return true
  }
  return false
}

describe('help', () => {
  it('the overview lists every command with its own summary', async () => {
    const summaries = await listed()
    assert.deepEqual([...summaries.keys()], Object.keys(COMMANDS))
    for (const [name, summary] of summaries) assert.deepEqual(await COMMANDS[name]!.load().then((command) => [command.name, command.summary]), [name, summary])
  })

  it('the help of each command names each of its flags, and no other', async () => {
    for (const [name, { load }] of Object.entries(COMMANDS)) {
      const { code, stdout, stderr } = await run([name, '--help'], { env: { RUNLEDGER_DB: 'nonsense' } })
      assert.deepEqual([code, stderr], [0, ''])
      assert.match(stdout, /^Examples?: /m, `${name} has an example`)
      const own = [...COMMON, ...Object.keys((await load()).options)]
      const named = new Set([...stdout.matchAll(/(?<![\w-])--([a-z][a-z-]*)/g)].map(([, flag = '']) => flag))
      assert.deepEqual(own.filter((flag) => !named.has(flag)), [], name)
      // A flag of another command may be named, right behind that command.
      const others = [...named].filter((flag) => !own.includes(flag))
      for (const flag of others) assert.ok(await isFlagOfAnother(flag, stdout), `${name} --${flag}`)
    }
  })

  it('help and -h say the same as --help', async () => {
    const { stdout } = await run(['--help'])
    assert.deepEqual([(await run(['help'])).stdout, (await run(['-h'])).stdout], [stdout, stdout])
    assert.equal((await run(['exec', '-h'])).stdout, (await run(['exec', '--help'])).stdout)
  })

  it('--version is that of the package, of every command', async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as { version: string }
    for (const args of [['--version'], ['exec', '--version'], ['migrate', '--version']]) assert.deepEqual(await run(args).then(({ code, stdout }) => [code, stdout]), [0, `${version}\n`])
  })
})

/** What the command line says about itself is what it does. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { Command } from '../../src/cli/command.ts'
import { run } from '../support/cli.ts'

const COMMON = ['db', 'connect-timeout', 'json', 'log-format', 'help', 'version']

async function commandOf(name: string): Promise<Command> {
  const file = (await import(`../../src/cli/${name}.ts`)) as Record<string, Command>
  return file[`${name}Command`]!
}

/** `  name      summary` of every command in the overview. */
async function listed(): Promise<Map<string, string>> {
  const { stdout } = await run(['--help'])
  return new Map([...stdout.matchAll(/^ {2}([a-z]+) {2,}(\S.*)$/gm)].map(([, name = '', summary = '']) => [name, summary]))
}

describe('help', () => {
  it('the overview lists every command with its own summary', async () => {
    const summaries = await listed()
    assert.deepEqual([...summaries.keys()], ['exec', 'reap', 'runs', 'show', 'windows', 'migrate'])
    for (const [name, summary] of summaries) assert.equal((await commandOf(name)).summary, summary, name)
  })

  it('the help of each command names each of its flags, and no other', async () => {
    for (const name of (await listed()).keys()) {
      const { code, stdout, stderr } = await run([name, '--help'], { env: { RUNLEDGER_DB: 'nonsense' } })
      assert.deepEqual([code, stderr], [0, ''])
      const named = new Set([...stdout.matchAll(/(?<![\w-])--([a-z][a-z-]*)/g)].map(([, flag]) => flag))
      const known = [...COMMON, ...Object.keys((await commandOf(name)).options)]
      assert.deepEqual([...named].toSorted(), known.toSorted(), name)
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

/** docs/json.md names the fields of every command's --json, as the commands print them. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import { openStore } from '../../src/runtime/open-store.ts'
import { embeddedLedger, run, sh } from '../support/cli.ts'
import { oldWindows } from '../support/old-runs.ts'

const PAGE = readFileSync(new URL('../../docs/json.md', import.meta.url), 'utf8')
const documented = new Map([...PAGE.matchAll(/^\| `([a-z ]+)` \| (`.*`) \|$/gm)].map(([, command = '', fields = '']) => [command, [...fields.matchAll(/`([a-z_]+)`/g)].map(([, field]) => field!)]))

/** Commands that print nothing of their own, or what the job prints. */
const SILENT = ['exec', 'work', 'hold', 'effect', 'metrics', 'completion', 'selftest']

describe('docs/json.md', () => {
  const ledger = embeddedLedger()
  const said = new Map<string, Record<string, unknown>[]>()

  async function ask(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
    const { stdout, stderr } = await ledger.run([...args, '--json'], { env })
    const lines = stdout.trimEnd().split('\n').filter(Boolean).map((line) => JSON.parse(line) as Record<string, unknown>)
    assert.ok(lines.length > 0, `${command}: ${stderr}`)
    said.set(command, [...(said.get(command) ?? []), ...lines])
    return stdout.trim()
  }

  it('every line is an object with the documented fields, in their order', async () => {
    await ledger.run(['exec', '--task', 't', '--key', 'a', ...sh('"$0" 2>/dev/null; exit 3')])
    await ledger.run(['exec', '--task', 't', '--key', 'a', ...sh('true')])
    const claim = async (key: string) => (await ask('claim', ['claim', '--task', 't', '--key', key])).split('\n').at(-1)!
    const one = await claim('c')
    await ask('claim conflict', ['claim', '--task', 't', '--key', 'c'])
    await ask('heartbeat', ['heartbeat'], { RUNLEDGER_CLAIM: one })
    await ledger.run(['effect', '--name', 'mail', '--', 'true'], { env: { RUNLEDGER_CLAIM: one } })
    await ask('complete', ['complete'], { RUNLEDGER_CLAIM: one })
    await ask('fail', ['fail'], { RUNLEDGER_CLAIM: await claim('d') })
    await ask('release', ['release'], { RUNLEDGER_CLAIM: await claim('e') })
    await ask('effects', ['effects'])
    await ask('fence check', ['fence', 'check', '--resource', 'r', '--token', '9'])
    await ask('fence bump', ['fence', 'bump'])
    await ask('runs', ['runs'])
    const show = (await ask('show', ['show', 't:a'])).split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
    said.set('show run', show.filter(({ kind }) => kind === 'run'))
    said.set('show history', show.filter(({ kind }) => kind === 'history'))
    said.delete('show')
    await ask('enqueue', ['enqueue', '--task', 'queued', '--key', 'a'])
    await ask('why run', ['why', 't:a'])
    await ask('why task', ['why', 't'])
    await ask('cancel', ['cancel', 't:e'])
    await ask('retry', ['retry', 't:a'])
    await ask('pause', ['pause', 't'])
    await ask('resume', ['resume', 't'])
    await ask('actions', ['actions'])
    said.set('show action', (await ask('show', ['show', 't:e'])).split('\n').map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ kind }) => kind === 'action'))
    said.delete('show')
    await ledger.run(['exec', '--task', 'hourly', '--every', '1h', ...sh('exit 3')])
    await ask('tasks', ['tasks'])
    await ask('tasks launchers', ['tasks', '--launchers'])
    await ledger.run(['tasks', 'set', '--task', 'daily', '--every', '1d', '--since', '2026-09-01T00:00:00Z', '--grace', '1s'])
    await ask('missing', ['missing', '--task', 'daily', '--since', '3d'])
    await ask('why window', ['why', 'daily:2026-09-20-00:00'])
    await ask('backfill', ['backfill', '--task', 'daily', '--from', '2026-09-10T00:00:00Z', '--to', '2026-09-12T00:00:00Z', '--dry-run'])
    await ask('check', ['check'])
    await ask('windows', ['windows', '--every', '1h', '--at', '2026-09-20T10:00:00Z'])
    const store = await openStore(ledger.url)
    await oldWindows(store, 'old', 0, 2, { fence: 0n })
    await oldWindows(store, 'dead', 0, 0, { status: 'processing', finished_at: null })
    await store.close()
    await ask('prune', ['prune', '--older-than', '30d'])
    await ask('verify', ['verify'])
    await ask('doctor', ['doctor'])
    await ask('reap', ['reap'])
    await ask('grants', ['grants', '--role', 'reader'])
    await ask('migrate up', ['migrate'])
    await ask('migrate status', ['migrate', 'status'])

    assert.deepEqual([...documented.keys()].toSorted(), [...said.keys()].toSorted())
    for (const [command, lines] of said) for (const line of lines) assert.deepEqual(Object.keys(line), documented.get(command), command)
  })

  it('names every command that prints something', () => {
    const named = new Set([...documented.keys()].map((command) => command.split(' ')[0]!))
    assert.deepEqual(Object.keys(COMMANDS).filter((name) => !named.has(name)), SILENT)
    for (const name of SILENT) assert.match(PAGE, new RegExp(`\`${name}\``), name)
  })

  it('with --json nothing but JSON is on stdout, also where there is nothing to say', async () => {
    const { code, stdout } = await ledger.run(['runs', '--task', 'nobody', '--json'])
    assert.deepEqual([code, stdout], [0, ''])
    assert.equal((await run(['runs', '--json', '--db', 'nonsense'])).stdout, '')
  })
})

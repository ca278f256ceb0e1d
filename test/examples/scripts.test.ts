/** The examples in PHP and bash, run as a user would: to the end, twice, killed, and behind. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startPaymentService, type PaymentService } from '../../examples/payments/service.ts'
import { BINARY, embeddedLedger, newFolder, until } from '../support/cli.ts'

const examples = join(import.meta.dirname, '../../examples')

describe('examples', () => {
  const ledger = embeddedLedger()
  const folder = newFolder()
  let service: PaymentService

  before(async () => {
    mkdirSync(join(folder, 'bin'))
    symlinkSync(BINARY, join(folder, 'bin/runledger'))
    service = await startPaymentService(join(folder, 'payments.db'))
  })
  after(() => service.close())

  const account = async () => (await fetch(`${service.url}/account`)).json()

  function start(command: string, ...args: string[]) {
    const env = { ...process.env, PATH: `${join(folder, 'bin')}:${dirname(process.execPath)}:${process.env['PATH']}`, RUNLEDGER_DB: ledger.url, PAYMENTS_URL: service.url }
    const script = spawn(join(examples, command), args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    let said = ''
    for (const stream of [script.stdout, script.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
    const end = once(script, 'exit').then(([code, signal]) => ({ code: code as number | null, signal: signal as string | null, said }))
    return { pid: script.pid!, end }
  }

  it('PHP: charges each customer once and writes its report; the second start of the day does nothing', async () => {
    const first = await start('php/billing.php', 'billing.json', 'ada', 'bob').end
    assert.deepEqual([first.code, first.said], [0, ''])
    assert.deepEqual((JSON.parse(readFileSync(join(folder, 'billing.json'), 'utf8')) as { customer: string }[]).map(({ customer }) => customer), ['ada', 'bob'])
    assert.deepEqual((await start('php/billing.php', 'other.json', 'ada', 'bob').end).code, 0)
    assert.equal(existsSync(join(folder, 'other.json')), false)
    assert.deepEqual(await account(), { charges: 2, cents: 1990 })
  })

  it('PHP: killed between two charges, the next start goes on where it was, and nobody is charged twice', async () => {
    await ledger.sql(`update task_runs set task_key = 'php-billing:yesterday' where task_name = 'php-billing'`)
    await ledger.sql(`update task_effects set effect_key = 'yesterday/' || effect_key`)
    const before = (await account()) as { charges: number }
    const script = start('php/billing.php', 'billing.json', 'cid', 'dot', 'eve')
    await until(async () => ((await account()) as { charges: number }).charges > before.charges, 'the first charge')
    process.kill(-script.pid, 'SIGKILL')
    assert.equal((await script.end).signal, 'SIGKILL')
    const next = await start('php/billing.php', 'billing.json', 'cid', 'dot', 'eve').end
    assert.equal(next.code, 0, next.said)
    assert.equal(((await account()) as { charges: number }).charges, before.charges + 3)
    assert.deepEqual(await ledger.sql(`select status, attempt from task_runs where task_name = 'php-billing' and task_key <> 'php-billing:yesterday'`), [{ status: 'completed', attempt: 2 }])
  })

  it('bash: writes the report, announces it once, and does nothing the second time', async () => {
    writeFileSync(join(folder, 'bin/announce'), '#!/bin/sh\necho "$1" >>announced\n', { mode: 0o755 })
    const first = await start('bash/report.sh', 'report.txt', 'announce').end
    assert.equal(first.code, 0, first.said)
    assert.match(readFileSync(join(folder, 'report.txt'), 'utf8'), /^disk use/)
    assert.equal((await start('bash/report.sh', 'report.txt', 'announce').end).code, 0)
    assert.equal(readFileSync(join(folder, 'announced'), 'utf8'), 'report.txt\n')
  })

  it('bash: behind a greater fence it writes nothing and records that it failed', async () => {
    await ledger.sql(`update task_runs set task_key = 'report:yesterday' where task_name = 'report'`)
    await ledger.sql(`update fenced_resources set token = 1000 where resource = 'report.txt'`)
    writeFileSync(join(folder, 'report.txt'), 'of the newer writer\n')
    const behind = await start('bash/report.sh', 'report.txt', 'announce').end
    assert.equal(behind.code, 77, behind.said)
    assert.equal(readFileSync(join(folder, 'report.txt'), 'utf8'), 'of the newer writer\n')
    assert.deepEqual(await ledger.sql(`select outcome, exit_code from task_attempts where task_name = 'report' and outcome <> 'conflict'`), [{ outcome: 'failed', exit_code: 77 }])
  })
})

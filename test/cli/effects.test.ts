/** Effects of shell scripts: the recorded output, what is in doubt, and the operator's word. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { embeddedLedger, kill, ledgerOn, newFolder, sh, until } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

eachDatabase('effects of scripts', (db) => {
  const ledger = ledgerOn(db)
  const folder = newFolder()

  it('96: an effect that a killed job had begun is in doubt, listed, resolved by a person and then not repeated', async (t) => {
    const calls = join(folder, `calls-${db.name}`)
    const job = (then: string) => ['exec', '--task', 'billing', '--key', 'a', '--max-attempts', '5', '--backoff', '0ms', ...sh(`"$0" "$1" effect --name charge -- sh -c 'echo "$RUNLEDGER_IDEMPOTENCY_KEY" >>${calls}; ${then}; echo receipt'`), process.execPath, bin()]
    const first = ledger.start(t, job('sleep 60'))
    await until(() => existsSync(calls), 'the call')
    kill(first.pid, 'SIGKILL')
    await first.end
    const second = await ledger.run(job(':'))
    assert.match(second.stderr, /EFFECT_IN_DOUBT: billing:a#charge was begun by attempt 1/)
    const listed = (await ledger.run(['effects', '--in-doubt', '--json'])).stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
    assert.deepEqual(listed.map(({ effect_key, status, attempt }) => [effect_key, status, attempt]), [['billing:a#charge', 'started', 1]])
    assert.match((await ledger.run(['effect', 'resolve', 'billing:a#charge', '--done', '--result', '"receipt by phone\\n"', '--by', 'ada'])).stdout, /is done, says ada/)
    const key = 'charge:a'
    assert.equal((await ledger.run(['effect', '--key', key, ...sh('echo other')])).stdout, 'other\n')
    assert.deepEqual(readFileSync(calls, 'utf8').trimEnd().split('\n'), ['billing:a#charge'])
    assert.deepEqual(await ledger.sql(`select status, resolved_by from task_effects where effect_key = 'billing:a#charge'`), [{ status: 'done', resolved_by: 'ada' }])
    assert.equal((await ledger.run(['effects', '--in-doubt'])).stdout, 'no effects\n')
  })
}, { atOnce: true })

describe('effects of scripts', () => {
  const ledger = embeddedLedger()
  const folder = newFolder()
  const effect = (key: string, script: string, ...flags: string[]) => ledger.run(['effect', '--key', key, ...flags, ...sh(script)])

  it('prints what was recorded, byte for byte, and runs nothing the second time', async () => {
    for (const [key, script, output] of [['text', 'printf "one\\ntwo"', Buffer.from('one\ntwo')], ['bytes', "printf '\\377\\000x'", Buffer.from([255, 0, 120])], ['nothing', ':', Buffer.alloc(0)]] as const) {
      assert.deepEqual((await effect(key, script)).stdoutBytes, output)
      assert.deepEqual((await effect(key, 'echo again')).stdoutBytes, output)
    }
  })

  it('the command that failed gives its exit code, and leaves the effect in doubt; so does one that was killed', async () => {
    const failed = await effect('fails', 'echo half; exit 7')
    assert.deepEqual([failed.code, failed.stdout], [7, 'half\n'])
    assert.match(failed.stderr, /in doubt/)
    assert.equal((await effect('fails', 'echo again')).code, 76)
    assert.equal((await effect('killed', 'kill -KILL $$')).code, 137)
    assert.equal((await effect('killed', 'echo again')).code, 76)
  })

  it('an exit code that says that nothing happened leaves it to be done', async () => {
    assert.equal((await effect('declined', 'exit 7', '--not-done-exit-code', '6,7')).code, 7)
    assert.equal((await effect('declined', 'echo accepted')).stdout, 'accepted\n')
  })

  it('in doubt, it is repeated on demand, with the same key; or the other side is asked', async () => {
    for (const key of ['repeat', 'asked-yes', 'asked-no', 'asked-unknown']) assert.equal((await effect(key, 'exit 1')).code, 1)
    assert.equal((await effect('repeat', 'echo "$RUNLEDGER_IDEMPOTENCY_KEY"', '--on-doubt', 'repeat')).stdout, 'repeat\n')
    assert.equal((await effect('asked-yes', 'echo run', '--on-doubt', 'echo "they have $RUNLEDGER_IDEMPOTENCY_KEY"')).stdout, 'they have asked-yes\n')
    assert.equal((await effect('asked-no', 'echo run', '--on-doubt', 'exit 1')).stdout, 'run\n')
    assert.equal((await effect('asked-unknown', 'echo run', '--on-doubt', 'exit 2')).code, 76)
  })

  it('output that is too large to record is printed all the same, and said', async () => {
    const large = await effect('large', 'head -c 200000 /dev/zero | tr "\\0" x')
    assert.deepEqual([large.code, large.stdout.length], [65, 200_000])
    assert.match(large.stderr, /RESULT_NOT_RECORDABLE.*wrote 200000 bytes/)
    const again = await effect('large', 'echo again')
    assert.deepEqual([again.code, again.stdout], [65, ''])
  })

  it('a command that cannot be run, a missing key and a wrong flag leave nothing behind', async () => {
    assert.equal((await ledger.run(['effect', '--key', 'none', '--', 'no-such-command'])).code, 127)
    assert.equal((await ledger.run(['effect', '--', 'true'])).code, 64)
    assert.equal((await ledger.run(['effect', '--name', 'lonely', '--', 'true'])).code, 64)
    assert.equal((await effect('none', 'true', '--not-done-exit-code', 'x')).code, 64)
    assert.equal((await effect('with#separator', 'true')).code, 64)
    for (const args of [['resolve'], ['resolve', 'none'], ['resolve', 'none', '--done', '--not-done']]) assert.equal((await ledger.run(['effect', ...args])).code, 64)
    assert.equal((await ledger.run(['effect', 'resolve', 'none', '--done'])).code, 1)
    assert.deepEqual(await ledger.sql(`select * from task_effects where effect_key like 'none%'`), [])
  })

  it('a signal reaches the command, whose end is recorded', async (t) => {
    const mark = join(folder, 'started')
    const running = ledger.start(t, ['effect', '--key', 'signalled', ...sh(`trap 'echo told; exit 0' TERM; echo >${mark}; while :; do sleep 0.05; done`)])
    await until(() => existsSync(mark), 'the command')
    kill(running.pid, 'SIGTERM')
    assert.deepEqual([(await running.end).stdout, (await effect('signalled', 'echo again')).stdout], ['told\n', 'told\n'])
  })

  it('fence check lets the newer pass, refuses the older with 77, and takes the fence of the claim', async () => {
    const check = (...flags: string[]) => ledger.run(['fence', 'check', '--resource', 'report.csv', ...flags])
    assert.deepEqual([(await check('--token', '9')).code, (await check('--token', '10')).code, (await check('--token', '10')).code, (await check('--token', '9')).code], [0, 0, 0, 77])
    const claim = (await ledger.run(['claim', '--task', 'fenced', '--key', 'a'])).stdout
    assert.equal((await check('--claim', claim)).code, 77)
    assert.equal((await ledger.run(['fence', 'bump', '--by', '1000'])).code, 0)
    assert.equal((await check()).code, 64)
    const next = (await ledger.run(['claim', '--task', 'fenced-too', '--key', 'a'])).stdout
    assert.equal((await ledger.run(['fence', 'check', '--resource', 'report.csv'], { env: { RUNLEDGER_CLAIM: next } })).code, 0)
  })
})

/** The command line under test, for a job that calls it. */
function bin(): string {
  return join(import.meta.dirname, '../../dist/bin/runledger.js')
}

/** A job's output: passed on whole at its reader's pace, and its end kept in the row, bounded and clean. */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { embeddedLedger, fieldsOf, ledgerOn, newFolder, procFile, sh, until } from '../support/cli.ts'
import { eachDatabase } from '../support/databases.ts'

const TAIL_BYTES = 16 * 1024

eachDatabase('output', (db) => {
  const ledger = ledgerOn(db)

  it('case 48: emoji, NUL and invalid UTF-8 on stderr do not hinder the record of the failure', async () => {
    const ran = await ledger.run(['exec', '--task', 'broken', ...sh(`printf '💥 café \\377\\376 \\000\\033[31m' >&2; exit 3`)])
    assert.equal(ran.code, 3)
    assert.deepEqual(await ledger.sql(`select status, exit_code, attempt, output_tail from task_runs where task_name = 'broken'`), [
      { status: 'failed', exit_code: 3, attempt: 1, output_tail: '💥 café \ufffd\ufffd ␀␛[31m' },
    ])
    assert.deepEqual(await ledger.sql(`select output_tail from task_attempts where task_name = 'broken'`), [{ output_tail: '💥 café \ufffd\ufffd ␀␛[31m' }])
  })

  it('case 49: of a long output the last 16 KiB are kept, in bytes, with a word on how much is missing', async () => {
    const ran = await ledger.run(['exec', '--task', 'long', ...sh(`i=0; while [ $i -lt 1000 ]; do echo "$i 💥💥💥💥💥💥💥💥💥💥 café"; i=$((i + 1)); done`)])
    const [{ output_tail: tail } = {}] = await ledger.sql(`select output_tail from task_runs where task_name = 'long'`)
    const [marker, cut] = /^\[… (\d+) bytes cut\]/.exec(String(tail))!
    const kept = String(tail).slice(marker.length)
    assert.ok(Buffer.byteLength(String(tail)) <= TAIL_BYTES && Buffer.byteLength(String(tail)) > TAIL_BYTES - 4)
    assert.ok(ran.stdout.endsWith(kept))
    assert.ok(Math.abs(Number(cut) - (ran.stdoutBytes.length - Buffer.byteLength(kept))) < 10, 'but for the debris of the one character that was split')
  })
})

describe('output', () => {
  const ledger = embeddedLedger()
  const folder = newFolder()
  const yes = sh('yes x | head -c 10000000')
  const statusOf = async (task: string) => (await ledger.sql(`select status, exit_code, failure_reason from task_runs where task_name = '${task}'`))[0]

  it('case 103: ten million bytes come through a pipe, all of them', async () => {
    const ran = await ledger.run(['exec', '--task', 'ten', ...yes])
    assert.deepEqual([ran.code, ran.stdoutBytes.length], [0, 10_000_000])
    assert.match((await ledger.sql(`select output_tail from task_runs where task_name = 'ten'`)).map(({ output_tail }) => String(output_tail)).join(), /^\[… 998\d{4} bytes cut\](x\n)+$/)
  })

  it('case 103: to a slow reader as well', async () => {
    const ran = await ledger.run(['exec', '--task', 'slow', ...yes], { under: ['sh', '-c', '"$@" | { sleep 1; wc -c; }', 'sh'] })
    assert.deepEqual([ran.stdout.trim(), await statusOf('slow')], ['10000000', { status: 'completed', exit_code: 0, failure_reason: null }])
  })

  it('case 103: a reader that closes early ends the job as a shell would have it, not the wrapper', async () => {
    const begun = performance.now()
    const ran = await ledger.run(['exec', '--task', 'early', '--', 'yes'], { under: ['bash', '-c', '"$@" | head -n 1; exit "${PIPESTATUS[0]}"', 'bash'] })
    assert.deepEqual([ran.code, ran.stdout], [141, 'y\n'])
    assert.deepEqual(await statusOf('early'), { status: 'failed', exit_code: 141, failure_reason: 'signal' })
    assert.doesNotMatch(ran.stderr, /EPIPE|at .*\.js/)
    assert.ok(performance.now() - begun < 15_000, 'at once: nobody else keeps its pipe open')
  })

  it('case 49: fifty megabytes on stderr are passed on in less than 200 MB of memory, and the run is recorded', async (t) => {
    const told = join(folder, 'told')
    const running = ledger.start(t, ['exec', '--task', 'fifty', ...sh(`yes '💥 café' | head -c 50000000 >&2; printf '\\377\\376' >&2; touch ${told}; while [ ! -e ${told}.go ]; do sleep 0.05; done; exit 4`)])
    const { pid } = fieldsOf(await running.line(/status=started/))
    await until(() => existsSync(told), 'the end of the noise', 60_000)
    const peak = Number(/VmHWM:\s+(\d+) kB/.exec(procFile(Number(pid), 'status'))![1]) / 1024
    writeFileSync(`${told}.go`, '')
    const { code, stderr } = await running.end
    assert.deepEqual([code, await statusOf('fifty')], [4, { status: 'failed', exit_code: 4, failure_reason: 'exit' }])
    assert.ok(stderr.length > 35_000_000)
    assert.ok(peak > 10 && peak < 200, `${peak} MB`)
  })
})

/** Output passes through byte for byte, at its reader's pace, in bounded memory, and never truncated. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { TestContext } from 'node:test'
import { startWrapper } from './wrapper.ts'
import type { Wrapper, WrapperOptions } from './wrapper.ts'

const sh = (script: string): string[] => ['sh', '-c', script]
const TEN_MB = sh('yes x | head -c 10000000')

/** The wrapper's stdout goes to `reader`, a shell's; resolves with what that printed. */
async function into(t: TestContext, reader: string, command: string[], options: WrapperOptions = {}): Promise<{ wrapper: Wrapper; printed: string }> {
  const shell = spawn('sh', ['-c', reader], { stdio: ['pipe', 'pipe', 'inherit'] })
  const wrapper = startWrapper(t, command, { ...options, stdio: ['ignore', shell.stdin, 'pipe'] })
  shell.stdin.destroy() // the wrapper has it now
  let printed = ''
  for await (const chunk of shell.stdout) printed += String(chunk)
  return { wrapper, printed }
}

/** As `into`, with a pipe as cron and shells make it, both ends of which are this one shell's affair. */
function piped(wrapperWith: string, reader: string): string {
  return `${wrapperWith} | { ${reader}; }`
}

describe('output', { timeout: 60_000 }, () => {
  it('every byte value comes through on both streams', async (t) => {
    const script = 'const b = Buffer.from(Array.from({ length: 256 }, (_, i) => i)); process.stdout.write(b); process.stderr.write(b)'
    const { stdout, stderr } = await startWrapper(t, ['node', '-e', script]).end
    const all = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
    assert.deepEqual([stdout, stderr], [all, all])
  })

  it('case 103: ten million bytes arrive, all of them', async (t) => {
    const { wrapper, printed } = await into(t, 'wc -c', TEN_MB)
    assert.equal(printed.trim(), '10000000')
    assert.equal((await wrapper.end).exitCode, 0)
  })

  it('case 103: also when the reader sleeps first, and the child waits for it', async (t) => {
    const { wrapper, printed } = await into(t, 'sleep 3; wc -c', TEN_MB)
    assert.equal(printed.trim(), '10000000')
    await wrapper.end
    assert.ok((await wrapper.step('flushed')).rssMiB < 150)
  })

  it('case 103: a reader that leaves ends the child as it would without us, by SIGPIPE, and no crash', async (t) => {
    const { wrapper, printed } = await into(t, 'head -n 1', ['yes'])
    const { exitCode, stderr } = await wrapper.end
    assert.deepEqual([printed, exitCode, String(stderr)], ['y\n', 141, ''])
  })

  it('a child that ignores SIGPIPE gets EPIPE, and may go on', async (t) => {
    const { wrapper } = await into(t, 'true', sh('trap "" PIPE; while echo x; do :; done 2>/dev/null; exit 5'))
    assert.equal((await wrapper.end).exitCode, 5)
  })

  it('when only the reader of stderr leaves, stdout goes on', async (t) => {
    const wrapper = startWrapper(t, sh('trap "" PIPE; exec 3>&2 2>/dev/null; while echo x >&3; do :; done; echo still here'))
    wrapper.process.stderr!.destroy()
    assert.equal(String((await wrapper.end).stdout), 'still here\n')
  })

  it('case 49: fifty million bytes on stderr, in bounded memory, and the tail is the end of them', async (t) => {
    const wrapper = startWrapper(t, sh('head -c 50000000 /dev/zero >&2; echo "the end" >&2; exit 3'), { env: { FIXTURE_TAIL_BYTES: '20' } })
    const { exitCode, stderr } = await wrapper.end
    assert.deepEqual([exitCode, stderr.length], [3, 50_000_008])
    assert.equal((await wrapper.step('ended')).tail, `${'\0'.repeat(12)}the end\n`)
    assert.ok((await wrapper.step('flushed')).rssMiB < 150)
  })

  it('half a gigabyte passes in bounded memory', async (t) => {
    const { wrapper, printed } = await into(t, 'wc -c', sh('head -c 500000000 /dev/zero'))
    await wrapper.end
    assert.equal(printed.trim(), '500000000')
    assert.ok((await wrapper.step('flushed')).rssMiB < 150)
  })

  it('a reader that does not read delays the exit, but not the end of the run, nor its tail', async (t) => {
    const waiting = piped('"$@"', 'while [ ! -e go ]; do sleep 0.02; done; wc -c')
    const wrapper = startWrapper(t, sh('head -c 150000 /dev/zero; echo last'), { under: ['sh', '-c', waiting, 'sh'] })
    assert.match((await wrapper.step('ended')).tail, /\0last\n$/)
    assert.deepEqual(wrapper.steps().map(({ step }) => step), ['started', 'ended'])
    writeFileSync(join(wrapper.folder, 'go'), '')
    assert.equal(String((await wrapper.end).stdout).trim(), '150005')
    await wrapper.step('flushed')
  })

  it('what the child wrote just before it died is in the tail and passed on, every time', async (t) => {
    await Promise.all(
      Array.from({ length: 10 }, async (_, index) => {
        const wrapper = startWrapper(t, sh(`head -c 65000 /dev/zero; printf last${index}; kill -KILL $$`))
        const { stdout, exitCode } = await wrapper.end
        assert.deepEqual([stdout.length, exitCode], [65_005, 137])
        assert.ok((await wrapper.step('ended')).tail.endsWith(`last${index}`))
      }),
    )
  })

  it('stdout and stderr into one file keep the order of the lines', async (t) => {
    const { folder } = startWrapper(t, ['true'])
    const log = join(folder, 'log')
    const file = openSync(log, 'a')
    const lines = 'i=0; while [ $i -lt 500 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done'
    const wrapper = startWrapper(t, sh(lines), { stdio: ['ignore', file, file], env: { FIXTURE_TAIL_BYTES: '100000' } })
    closeSync(file)
    await wrapper.end
    const expected = Array.from({ length: 500 }, (_, index) => `out ${index}\nerr ${index}\n`).join('')
    assert.equal(readFileSync(log, 'utf8'), expected)
    assert.equal((await wrapper.step('ended')).tail, expected)
  })

  it('apart, each keeps its own', async (t) => {
    const { stdout, stderr } = await startWrapper(t, sh('echo out; echo err >&2')).end
    assert.deepEqual([String(stdout), String(stderr)], ['out\n', 'err\n'])
  })

  it('the child can open its output by name, as under cron', async (t) => {
    const { stdout, stderr } = await startWrapper(t, sh('echo named >/dev/stdout; echo named >/dev/stderr; echo tee | tee /dev/stderr; [ -p /dev/stdout ] && echo pipe')).end
    assert.deepEqual([String(stdout), String(stderr)], ['named\ntee\npipe\n', 'named\ntee\n'])
  })

  it('a full disk loses output, says so, and ends neither the child nor us', async (t) => {
    const full = openSync('/dev/full', 'w')
    const wrapper = startWrapper(t, sh('echo lost; sleep 0.1; echo lost too; exit 6'), { stdio: ['ignore', full, 'pipe'] })
    closeSync(full)
    assert.equal((await wrapper.end).exitCode, 6)
    assert.match((await wrapper.step('flushed')).lost ?? '', /ENOSPC/)
    assert.equal((await wrapper.step('ended')).tail, 'lost\nlost too\n')
  })

  it('without a shell for the watchdog, output passes all the same', async (t) => {
    const wrapper = startWrapper(t, sh('echo err >&2; yes x | head -c 1000000; exit 3'), { env: { FIXTURE_SHELL: '/nowhere/sh' } })
    const { exitCode, stdout, stderr } = await wrapper.end
    assert.deepEqual([exitCode, stdout.length, String(stderr)], [3, 1_000_000, 'err\n'])
    assert.match((await wrapper.step('unwatched') as unknown as { problem: string }).problem, /ENOENT/)
  })

  it('a stdout that somebody has made non-blocking is waited for', async (t) => {
    // As a Node process beside us does, as long as it lives, to a pipe it shares with us.
    const beside = `node -e 'process.stdout.write(""); setInterval(() => require("fs").existsSync("go") && process.exit(), 20)' &`
    const wrapper = startWrapper(t, sh('sleep 1; seq 1 300000'), { under: ['sh', '-c', piped(`{ ${beside} "$@"; echo >go; }`, 'sleep 2; sha256sum'), 'sh'] })
    const expected = createHash('sha256').update(spawnSync('seq', ['1', '300000'], { maxBuffer: 1 << 24 }).stdout).digest('hex')
    assert.equal(String((await wrapper.end).stdout).slice(0, 64), expected)
  })

  it('our stdout and stdin keep their mode: neither becomes non-blocking for those who share them', async (t) => {
    const script = piped('{ "$@"; grep flags /proc/self/fdinfo/0 /proc/self/fdinfo/1; }', 'cat')
    const wrapper = startWrapper(t, sh('echo x; sleep 0.2; grep flags /proc/$PPID/fdinfo/0 /proc/$PPID/fdinfo/1'), { under: ['sh', '-c', script, 'sh'] })
    const flags = String((await wrapper.end).stdout).match(/\d+$/gm)
    assert.equal(flags?.length, 4)
    for (const flag of flags ?? []) assert.equal(Number.parseInt(flag, 8) & 0o4000, 0, 'O_NONBLOCK')
  })
})

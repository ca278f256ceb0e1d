/** The job as a child process: what it is given, what is seen of its end, and that nothing of its group survives. */
import assert from 'node:assert/strict'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { startChild } from '../../../src/cli/exec/child.ts'
import { startWatchdog } from '../../../src/cli/exec/watchdog.ts'
import { eventually, isRunning, procFile, processesOf, startWrapper } from './wrapper.ts'

const sh = (script: string): string[] => ['sh', '-c', script]

describe('child', { timeout: 60_000 }, () => {
  it('hands on the exit code of the child, and 128 + n for one that died of signal n', async (t) => {
    for (const [script, code] of [['exit 0', 0], ['exit 7', 7], ['exit 255', 255], ['kill -KILL $$', 137], ['kill -ABRT $$', 134]] as const) {
      assert.equal((await startWrapper(t, sh(script)).end).exitCode, code, script)
    }
  })

  it('the child sees the arguments, its own name and every variable, one with a name no shell would keep included', async (t) => {
    const script = 'console.log(JSON.stringify([process.argv0, process.argv.slice(1), process.env["app.mode"], process.env.RUNLEDGER_INSTANCE_ID]))'
    const { end, mark } = startWrapper(t, ['node', '-e', script, '--', 'a b', '', '$x', 'é'], { env: { 'app.mode': 'x=y' } })
    assert.deepEqual(JSON.parse(String((await end).stdout)), ['node', ['a b', '', '$x', 'é'], 'x=y', mark])
  })

  it('the child leads a session and group of its own', async (t) => {
    const wrapper = startWrapper(t, sh('echo $$; exec cut -d" " -f5,6 /proc/$$/stat'))
    const [pid, group] = String((await wrapper.end).stdout).split('\n')
    assert.equal(group, `${pid} ${pid}`)
  })

  it('signals are as at birth: SIGPIPE is not ignored, none is blocked', async (t) => {
    const { stdout } = await startWrapper(t, ['grep', '-E', 'SigIgn|SigBlk', '/proc/self/status']).end
    assert.equal(String(stdout), 'SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n')
  })

  it('case 102: no descriptor of ours is inherited', async (t) => {
    const opened = 'require("fs").openSync("/dev/zero"); require("net").createServer().listen(0)'
    const preload = `data:text/javascript,${encodeURIComponent(`import { createRequire } from 'node:module'; const require = createRequire('/'); ${opened.replace('listen(0)', 'listen(0).unref()')}`)}`
    const { stdout } = await startWrapper(t, sh('for f in /proc/self/fd/*; do readlink $f; done | grep -E "zero|socket" || echo none'), { env: { NODE_OPTIONS: `--import=${preload}` } }).end
    assert.equal(String(stdout), 'none\n')
  })

  it('stdin is the very file we have: unread, and at its place', async (t) => {
    const folder = startWrapper(t, ['true']).folder
    const path = join(folder, 'in')
    writeFileSync(path, 'one\ntwo\nthree\n')
    const stdin = openSync(path, 'r')
    const first = await startWrapper(t, sh('head -c 4; readlink /proc/self/fd/0'), { stdio: [stdin, 'pipe', 'pipe'] }).end
    const second = await startWrapper(t, ['cat'], { stdio: [stdin, 'pipe', 'pipe'] }).end
    closeSync(stdin)
    assert.equal(String(first.stdout), `one\n${path}\n`)
    assert.equal(String(second.stdout), 'two\nthree\n')
  })

  it('case 104: a child that never reads its stdin does no harm', async (t) => {
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const wrapper = startWrapper(t, ['true'], { stdio: ['pipe', 'pipe', 'pipe'] })
        wrapper.process.stdin!.on('error', () => {}) // ours may meet EPIPE; the wrapper must not
        wrapper.process.stdin!.end('data\n'.repeat(100_000))
        const { exitCode, stderr } = await wrapper.end
        assert.deepEqual([exitCode, String(stderr)], [0, ''])
      }),
    )
  })

  it('a command that the system refuses after all is told as a value, and its watchdog ends', async () => {
    const instanceId = `refused-${process.pid}`
    const refused = async (path: string, args: string[]) => {
      const watchdog = await startWatchdog({ instanceId, graceMs: 1000 })
      const started = await startChild({ path, argv0: 'cmd', args, env: {}, instanceId, tailBytes: 0, graceMs: 1000, watchdog })
      assert.ok('problem' in started)
      return [started.exitCode, started.problem]
    }
    assert.deepEqual(await refused('/nowhere/cmd', []), [127, 'cmd: cannot be started: spawn /nowhere/cmd ENOENT'])
    assert.deepEqual(await refused('/bin/true', ['x'.repeat(3 << 20)]), [126, 'cmd: cannot be started: spawn E2BIG'])
    assert.deepEqual(processesOf(instanceId), [])
  })

  it('case 100: a grandchild that keeps the output open does not hold the run', async (t) => {
    const wrapper = startWrapper(t, sh('sleep 60 & echo $!; exit 4'))
    const { exitCode, stdout } = await wrapper.end // which waits for end-of-file on both
    assert.equal(exitCode, 4)
    const grandchild = Number(String(stdout))
    assert.ok(isRunning(grandchild), 'it is left alone')
    process.kill(grandchild)
  })

  it('what a grandchild writes after the run does not kill it, and goes where it went before if that is a file', async (t) => {
    const { folder } = startWrapper(t, ['true'])
    const log = join(folder, 'log')
    const file = openSync(log, 'a')
    const script = 'trap "" HUP; (while [ ! -e go ]; do sleep 0.02; done; echo late; echo late >&2; echo alive >seen) & echo early'
    const wrapper = startWrapper(t, sh(script), { stdio: ['ignore', file, file] })
    closeSync(file)
    await wrapper.end
    assert.equal(readFileSync(log, 'utf8'), 'early\n')
    writeFileSync(join(wrapper.folder, 'go'), '')
    await eventually(() => readFileSync(log, 'utf8') === 'early\nlate\nlate\n', 'the late lines')
    await eventually(() => processesOf(wrapper.mark).length === 0, 'the end of all')
    assert.equal(readFileSync(join(wrapper.folder, 'seen'), 'utf8'), 'alive\n')
  })

  it('into a pipe its later output is not passed on: the reader sees the end with the run, and the writer lives', async (t) => {
    const script = '(while [ ! -e go ]; do sleep 0.02; done; echo late; echo late >&2; echo alive >seen) & echo early'
    const wrapper = startWrapper(t, sh(script))
    assert.equal(String((await wrapper.end).stdout), 'early\n')
    writeFileSync(join(wrapper.folder, 'go'), '')
    await eventually(() => processesOf(wrapper.mark).length === 0, 'the end of all')
    assert.equal(readFileSync(join(wrapper.folder, 'seen'), 'utf8'), 'alive\n')
  })

  it('grandchildren that write on and on do not hold the run either', async (t) => {
    const wrapper = startWrapper(t, sh('for i in 1 2 3 4; do yes & echo $! >>pids; done; exit 3'))
    assert.equal((await wrapper.end).exitCode, 3)
    for (const pid of readFileSync(join(wrapper.folder, 'pids'), 'utf8').trim().split('\n')) process.kill(Number(pid))
  })

  it('is not held by a process that left the group and the output, nor does it touch it', async (t) => {
    const wrapper = startWrapper(t, sh('setsid sleep 60 >/dev/null 2>&1 & echo $!'))
    const daemon = Number(String((await wrapper.end).stdout))
    await eventually(() => procFile(daemon, 'comm') === 'sleep\n', 'the sleep')
    process.kill(daemon)
  })
})

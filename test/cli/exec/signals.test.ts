/** Signals to the wrapper reach every process of the job; two of them, or patience at its end, kill it. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { TestContext } from 'node:test'
import { exitCodeOf, onSignals } from '../../../src/cli/exec/signals.ts'
import { eventually, isRunning, kill, procFile, processesOf, startWrapper } from './wrapper.ts'
import type { Wrapper, WrapperOptions } from './wrapper.ts'

/** Started, and so far that it printed `ready`. */
async function ready(t: TestContext, script: string, options: WrapperOptions = {}): Promise<{ wrapper: Wrapper; pid: number; output: () => string }> {
  const wrapper = startWrapper(t, ['sh', '-c', script], options)
  let output = ''
  wrapper.process.stdout!.on('data', (chunk) => (output += String(chunk)))
  await eventually(() => output.includes('ready'), 'the word ready')
  return { wrapper, pid: (await wrapper.step('started')).wrapper, output: () => output }
}

/** Says the name of every signal it gets, and ends at the word of none of them. */
const STUBBORN = 'for s in HUP INT QUIT TERM USR1 USR2; do trap "echo got $s" $s; done; echo ready; while :; do sleep 0.05; done'

describe('signals', { timeout: 60_000 }, () => {
  it('exit codes are 128 + the number of the signal, by its name', () => {
    for (const [name, number] of Object.entries(constants.signals)) assert.equal(exitCodeOf({ exitCode: null, signal: name as NodeJS.Signals }), 128 + number)
    assert.equal(exitCodeOf({ exitCode: 3, signal: null }), 3)
  })

  it('case 99: SIGTERM reaches the whole group, not only the shell; none is left; 143', async (t) => {
    const { wrapper, pid } = await ready(t, 'sleep 300 & echo ready; wait')
    assert.equal(processesOf(wrapper.mark).length, 4, 'wrapper, watchdog, sh, sleep')
    process.kill(pid, 'SIGTERM')
    assert.equal((await wrapper.end).exitCode, 143)
    assert.equal((await wrapper.step('ended')).signal, 'SIGTERM')
    assert.deepEqual(processesOf(wrapper.mark), [])
  })

  for (const name of ['SIGINT', 'SIGHUP', 'SIGQUIT'] as const) {
    it(`${name} ends the job likewise`, async (t) => {
      const { wrapper, pid } = await ready(t, 'echo ready; ulimit -c 0; exec sleep 300')
      process.kill(pid, name)
      assert.equal((await wrapper.end).exitCode, 128 + constants.signals[name])
    })
  }

  it('a job that handles the signal has its say in the exit code', async (t) => {
    const { wrapper, pid } = await ready(t, 'trap "exit 9" TERM; echo ready; while :; do sleep 0.05; done')
    process.kill(pid, 'SIGTERM')
    assert.equal((await wrapper.end).exitCode, 9)
  })

  it('case 88: a job that ignores SIGTERM is killed with all its group when the grace period is over, not before', async (t) => {
    const { wrapper, pid, output } = await ready(t, `trap "" INT; (${STUBBORN}) & ${STUBBORN}`, { env: { FIXTURE_GRACE_MS: '700' } })
    const start = performance.now()
    process.kill(pid, 'SIGTERM')
    assert.equal((await wrapper.end).exitCode, 137)
    assert.ok(performance.now() - start >= 690)
    assert.match(output(), /got TERM/)
    assert.deepEqual(processesOf(wrapper.mark), [])
  })

  it('who is left of the group when the child itself has obeyed is killed too', async (t) => {
    const { wrapper, pid } = await ready(t, `(${STUBBORN}) >/dev/null & echo ready; exec sleep 300`, { env: { FIXTURE_GRACE_MS: '500' } })
    process.kill(pid, 'SIGTERM')
    assert.equal((await wrapper.end).exitCode, 143)
    assert.deepEqual(processesOf(wrapper.mark), [])
  })

  it('a zombie that nobody reaps is not waited for', async (t) => {
    // The inner shell leaves the group, by way of exec, with a child in it that it will never wait for.
    const script = 'sh -c "sleep 0.1 & exec setsid sleep 60" & left=$!; sleep 0.5; echo $left >left; echo ready; exec sleep 300'
    const { wrapper, pid } = await ready(t, script, { env: { FIXTURE_GRACE_MS: '300' } })
    const start = performance.now()
    process.kill(pid, 'SIGTERM')
    assert.equal((await wrapper.end).exitCode, 143)
    assert.ok(performance.now() - start < 5000)
    kill(Number(readFileSync(join(wrapper.folder, 'left'), 'utf8')))
  })

  it('a second request kills at once', async (t) => {
    const { wrapper, pid, output } = await ready(t, STUBBORN, { env: { FIXTURE_GRACE_MS: '60000' } })
    process.kill(pid, 'SIGTERM')
    await eventually(() => output().includes('got TERM'), 'TERM in the job')
    process.kill(pid, 'SIGINT')
    assert.equal((await wrapper.end).exitCode, 137)
  })

  it('the same signal twice at once, as from a terminal and from npm, is one request; later it is a second', (t) => {
    let now = 1000
    t.mock.method(performance, 'now', () => now)
    const orders: string[] = []
    const remove = onSignals((signal, order) => orders.push(`${signal} ${order}`))
    process.emit('SIGINT', 'SIGINT')
    now += 150
    process.emit('SIGINT', 'SIGINT')
    assert.deepEqual(orders, ['SIGINT stop'])
    process.emit('SIGTERM', 'SIGTERM')
    now += 150
    process.emit('SIGINT', 'SIGINT')
    assert.deepEqual(orders, ['SIGINT stop', 'SIGTERM kill', 'SIGINT kill'])
    remove()
    assert.equal(process.listenerCount('SIGINT'), 0)
  })

  it('USR1 and USR2 are handed on and mean what the job says; Node opens no debugger', async (t) => {
    const { wrapper, pid, output } = await ready(t, STUBBORN, { env: { FIXTURE_GRACE_MS: '1' } })
    for (const name of ['USR1', 'USR2'] as const) {
      process.kill(pid, `SIG${name}`)
      await eventually(() => output().includes(`got ${name}`), name)
    }
    process.kill(pid, 'SIGTERM')
    assert.doesNotMatch(String((await wrapper.end).stderr), /[Dd]ebugger/)
  })

  it('Ctrl-Z is not obeyed: a job under a lease does not stop', async (t) => {
    const { wrapper, pid, output } = await ready(t, STUBBORN, { env: { FIXTURE_GRACE_MS: '1' } })
    process.kill(pid, 'SIGTSTP')
    process.kill(pid, 'SIGUSR1')
    await eventually(() => output().includes('got USR1'), 'USR1 through a wrapper that goes on')
    process.kill(pid, 'SIGTERM')
    await wrapper.end
  })

  it('a job that is stopped itself is woken up to end', async (t) => {
    const { wrapper, pid } = await ready(t, 'trap "exit 9" TERM; echo ready; kill -STOP $$; sleep 300', { env: { FIXTURE_GRACE_MS: '60000' } })
    const child = (await wrapper.step('started')).pid
    await eventually(() => processesOf(wrapper.mark).includes(child), 'the child')
    process.kill(pid, 'SIGTERM')
    assert.equal((await wrapper.end).exitCode, 9)
  })

  it('once the run is over, signals do to the wrapper what they do to any process: a stuck reader does not hold it', async (t) => {
    const stuck = '"$@" | { while [ ! -e go ]; do sleep 0.02; done; cat >/dev/null; }'
    const wrapper = startWrapper(t, ['head', '-c', '150000', '/dev/zero'], { under: ['sh', '-c', stuck, 'sh'] })
    const { wrapper: pid } = await wrapper.step('started')
    await wrapper.step('ended')
    await eventually(() => !caught(pid, 'SIGTERM'), 'the removal of the handlers')
    process.kill(pid, 'SIGTERM')
    await eventually(() => !isRunning(pid), 'the end of the wrapper')
    assert.deepEqual(wrapper.steps().filter(({ step }) => step === 'flushed'), [])
    writeFileSync(join(wrapper.folder, 'go'), '') // lets the reader go
    await wrapper.end
  })
})

function caught(pid: number, name: NodeJS.Signals): boolean {
  const mask = /SigCgt:\t([0-9a-f]+)/.exec(procFile(pid, 'status'))?.[1] ?? '0'
  return (BigInt(`0x${mask}`) >> BigInt(constants.signals[name] - 1)) % 2n === 1n
}

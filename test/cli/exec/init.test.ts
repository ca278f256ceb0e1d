/** As process 1 of a container, made here with a pid namespace of its own. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { TestContext } from 'node:test'
import { eventually, procFile, processesOf, startWrapper } from './wrapper.ts'
import type { Wrapper, WrapperOptions } from './wrapper.ts'

const root = process.getuid?.() === 0
/** Whoever is not root becomes it in a user namespace first. */
const CONTAINER = ['unshare', ...(root ? [] : ['--user', '--map-root-user']), '--pid', '--fork', '--mount-proc', '--kill-child']

function inContainer(t: TestContext, script: string, options: WrapperOptions = {}): Wrapper {
  return startWrapper(t, ['sh', '-c', script], { under: CONTAINER, ...options })
}

/** The pid, as this machine sees it, of the container's process 1. */
async function processOne(wrapper: Wrapper): Promise<number> {
  await wrapper.step('started')
  return eventually(() => processesOf(wrapper.mark).find((pid) => procOneOf(pid)), 'process 1')
}

function procOneOf(pid: number): boolean {
  return /^NSpid:\t\d+\t1$/m.test(procFile(pid, 'status'))
}

function isWrapper(pid: number): boolean {
  return procFile(pid, 'cmdline').startsWith(`${process.execPath}\0`) && /^NSpid:\t\d+\t/m.test(procFile(pid, 'status'))
}

describe('process 1', { timeout: 60_000 }, () => {
  it('case 100: a double-forking job leaves no zombie, and the exit code is the direct child\'s', async (t) => {
    const script = 'for i in 1 2 3 4 5; do (sh -c "sleep 0.1; exit 1" &); done; sleep 1; ps -eo pid,stat,comm; exit 9'
    const { exitCode, stdout } = await inContainer(t, script).end
    assert.equal(exitCode, 9)
    assert.match(String(stdout), /^ +1 /m)
    assert.doesNotMatch(String(stdout), / Z/)
  })

  it('case 100: an orphan that lives on does not hold it', async (t) => {
    const { exitCode } = await inContainer(t, '(sleep 300 &); exit 4').end
    assert.equal(exitCode, 4)
  })

  it('case 100: SIGTERM, as docker stop sends it, ends the job, is recorded before the exit, and gives 143', async (t) => {
    const wrapper = inContainer(t, 'sleep 300 & wait')
    process.kill(await processOne(wrapper), 'SIGTERM')
    assert.equal((await wrapper.end).exitCode, 143)
    assert.equal((await wrapper.step('ended')).signal, 'SIGTERM')
    assert.deepEqual(wrapper.steps().map(({ step }) => step), ['started', 'signal', 'ended', 'flushed'])
  })

  it('other signals come through as well', async (t) => {
    const wrapper = inContainer(t, 'trap "exit 21" USR1; echo ready; while :; do sleep 0.05; done')
    let output = ''
    wrapper.process.stdout!.on('data', (chunk) => (output += String(chunk)))
    await eventually(() => output.includes('ready'), 'the word ready')
    process.kill(await processOne(wrapper), 'SIGUSR1')
    assert.equal((await wrapper.end).exitCode, 21)
  })

  it('stdin, arguments and environment are those that process 1 was given', async (t) => {
    const wrapper = startWrapper(t, ['sh', '-c', 'cat; echo "$1"; tr "\\0" "\\n" </proc/$$/environ', 'sh', 'a  b'], {
      under: CONTAINER,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { 'app.mode': 'x=\ny', EMPTY: '' },
    })
    wrapper.process.stdin!.end('input\n')
    const [input, argument, ...environment] = String((await wrapper.end).stdout).split('\n')
    assert.deepEqual([input, argument], ['input', 'a  b'])
    assert.ok(environment.includes('app.mode=x='))
    assert.ok(environment.includes('EMPTY='))
    assert.deepEqual(environment.filter((line) => /^(RUNLEDGER_UNDER|FIXTURE)/.test(line)), [])
    assert.equal(environment.filter((line) => line.startsWith('PWD=')).length, process.env['PWD'] === undefined ? 0 : 1)
  })

  it('a wrapper that is killed in it ends the container, with 137', async (t) => {
    const wrapper = inContainer(t, 'sleep 300')
    await processOne(wrapper)
    const inner = processesOf(wrapper.mark).find((pid) => !procOneOf(pid) && isWrapper(pid))!
    process.kill(inner, 'SIGKILL')
    assert.equal((await wrapper.end).exitCode, 137)
  })
})

/** Whatever becomes of the wrapper, its job does not run on unseen. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { describe, it } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startWatchdog } from '../../../src/cli/exec/watchdog.ts'
import { eventually, isRunning, kill, procFile, processesOf, startWrapper } from './wrapper.ts'
import type { Wrapper } from './wrapper.ts'

/** Every POSIX shell that stands for /bin/sh somewhere, as far as this machine has it. bash in the old way has no pipes for here-documents. */
const SHELLS: { name: string; shell: [string, ...string[]]; env?: NodeJS.ProcessEnv }[] = [
  { name: 'dash', shell: ['/bin/dash'] },
  { name: 'bash', shell: ['/bin/bash', '--posix'] },
  { name: 'bash before 5.1', shell: ['/bin/bash', '--posix', '-O', 'compat44'] },
  { name: 'busybox', shell: ['/bin/busybox', 'sh'] },
]

const JOB = ['sh', '-c', 'sleep 300 & echo ready; wait']

async function running(t: TestContext, env: NodeJS.ProcessEnv = {}, job = JOB): Promise<{ wrapper: Wrapper; pid: number; watchdog: number }> {
  const wrapper = startWrapper(t, job, { env })
  let output = ''
  wrapper.process.stdout!.on('data', (chunk) => (output += String(chunk)))
  await eventually(() => output.includes('ready'), 'the word ready')
  const watchdog = await eventually(() => processesOf(wrapper.mark).find((pid) => procFile(pid, 'cmdline').includes('runledger watchdog')), 'the watchdog')
  return { wrapper, pid: (await wrapper.step('started')).wrapper, watchdog }
}

async function allGone(wrapper: Wrapper, withinMs: number): Promise<void> {
  await eventually(() => processesOf(wrapper.mark).filter(isRunning).length === 0, 'the end of all', withinMs)
}

// At the same time, for they mostly wait.
describe('watchdog', { concurrency: true }, () => {
  for (const { name, shell, env } of SHELLS.filter(({ shell: [file] }) => existsSync(file))) {
    const settings = { ...env, FIXTURE_SHELL: shell.join(' ') }

    describe(`watchdog in ${name}`, { timeout: 60_000, concurrency: false }, () => {
      it('case 102: when the wrapper is killed, the whole group is, at once', async (t) => {
        const { wrapper, pid } = await running(t, settings)
        process.kill(pid, 'SIGKILL')
        await allGone(wrapper, 1000)
      })

      it('signals that reach everybody, as when a systemd unit is stopped, do not end it; the wrapper decides', async (t) => {
        const { wrapper, pid, watchdog } = await running(t, settings, ['sh', '-c', 'trap "" TERM HUP INT QUIT; echo ready; while :; do sleep 0.05; done'])
        for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) {
          process.kill(watchdog, signal)
          await sleep(20)
        }
        assert.ok(isRunning(watchdog))
        assert.ok(isRunning((await wrapper.step('started')).pid))
        process.kill(pid, 'SIGKILL')
        await allGone(wrapper, 1000)
      })

      it('a frozen wrapper loses its job when the lease is over, and no earlier', async (t) => {
        const { wrapper, pid } = await running(t, { ...settings, FIXTURE_LEASE_MS: '900' })
        await sleep(2000) // two leases and more: heartbeats keep the job
        const child = (await wrapper.step('started')).pid
        assert.ok(isRunning(child))
        process.kill(pid, 'SIGSTOP')
        const frozen = performance.now()
        await eventually(() => !isRunning(child), 'the end of the job', 3000)
        const lasted = performance.now() - frozen
        assert.ok(lasted > 500 && lasted < 1600, `${lasted} ms`)
        process.kill(pid, 'SIGCONT')
        assert.equal((await wrapper.end).exitCode, 143)
        await allGone(wrapper, 1000)
      })

      it('a job that ignores SIGTERM is killed after the grace period, also while the wrapper is frozen', async (t) => {
        const stubborn = ['sh', '-c', 'trap "" TERM; echo ready; while :; do sleep 0.05; done']
        const { wrapper, pid } = await running(t, { ...settings, FIXTURE_LEASE_MS: '600', FIXTURE_GRACE_MS: '1000' }, stubborn)
        const child = (await wrapper.step('started')).pid
        process.kill(pid, 'SIGSTOP')
        await eventually(() => !isRunning(child), 'the end of the job', 6000)
        process.kill(pid, 'SIGCONT')
        assert.equal((await wrapper.end).exitCode, 137)
      })

      it('ends with the job, timer included, and without anybody having to insist', async (t) => {
        const wrapper = startWrapper(t, ['sh', '-c', 'sleep 0.3'], { env: { ...settings, FIXTURE_LEASE_MS: '60000' } })
        await wrapper.end
        assert.deepEqual(processesOf(wrapper.mark), [])
      })

      it('gives the child real pipes', async (t) => {
        const { stdout } = await startWrapper(t, ['sh', '-c', '[ -p /dev/stdout ] && [ -p /dev/stderr ] && echo pipes >/dev/stdout'], { env: settings }).end
        assert.equal(String(stdout), 'pipes\n')
      })
    })
  }
})

describe('watchdog', { timeout: 60_000 }, () => {
  it('holds none of our descriptors, stands in /, and is not in the job\'s group nor in ours', async (t) => {
    const { wrapper, pid, watchdog } = await running(t)
    const inherited = filesOf('self') // what this machine's shell or runner left open for all of us is not the wrapper's
    const held = new Set(filesOf(watchdog).filter((file) => file !== '/dev/null' && !inherited.includes(file)))
    const [line, ...others] = held
    assert.match(line ?? '', /^socket:/)
    assert.deepEqual(others, [])
    assert.equal(readlinkSync(`/proc/${watchdog}/cwd`), '/')
    const groups = [pid, watchdog, (await wrapper.step('started')).pid].map((one) => procFile(one, 'stat').split(') ')[1]!.split(' ')[2])
    assert.equal(new Set(groups).size, 3)
    process.kill(pid, 'SIGTERM')
    await wrapper.end
  })

  it('starts no process at a heartbeat, however many come', async (t) => {
    const { wrapper, pid, watchdog } = await running(t, { FIXTURE_LEASE_MS: '30000', FIXTURE_BEAT_MS: '5' })
    const timers = () => processesOf(wrapper.mark).filter((one) => procFile(one, 'stat').includes(` ${watchdog} ${watchdog} `))
    const before = await eventually(() => timers().length === 3 && timers(), 'shell, timer and sleep')
    await sleep(300) // some fifty of them
    assert.deepEqual(timers(), before)
    process.kill(pid, 'SIGTERM')
    await wrapper.end
  })

  it('when it is killed itself, its timer goes too, and the job lives on', async (t) => {
    for (const leaseMs of ['60000', '700']) {
      const { wrapper, pid, watchdog } = await running(t, { FIXTURE_LEASE_MS: leaseMs })
      await eventually(() => processesOf(wrapper.mark).length >= 6, 'the timer')
      process.kill(watchdog, 'SIGKILL')
      await eventually(() => processesOf(wrapper.mark).every((one) => !procFile(one, 'stat').includes(` ${watchdog} ${watchdog} `)), 'the end of the timer', 2000)
      await sleep(leaseMs === '700' ? 1000 : 0) // past the lease it knew of
      assert.ok(isRunning((await wrapper.step('started')).pid))
      process.kill(pid, 'SIGTERM')
      assert.equal((await wrapper.end).exitCode, 143)
    }
  })

  it('is told the group before guard() returns: a wrapper killed in the same breath loses its job all the same', async (t) => {
    for (const lease of ['', 'watchdog.lease(60_000);']) {
      for (let round = 0; round < 4; round++) {
        const { child, mark } = suicide(t, `${lease} watchdog.starting(); watchdog.guard(spawnJob().pid); ${lease}`)
        await eventually(() => child.signalCode === 'SIGKILL', 'its end')
        await eventually(() => processesOf(mark).filter(isRunning).length === 0, 'the end of all, the timer of the lease included', 1000)
      }
    }
  })

  it('finds the job of a wrapper that was killed before it could tell the group', async (t) => {
    const { child, mark } = suicide(t, 'watchdog.starting(); spawnJob()')
    await eventually(() => child.signalCode === 'SIGKILL', 'its end')
    await eventually(() => processesOf(mark).filter((pid) => isRunning(pid) && procFile(pid, 'cmdline').startsWith('sleep\x00300')).length === 0, 'the end of the job', 1000)
    await eventually(() => processesOf(mark).length === 0, 'the end of the watchdog', 5000)
  })

  it('ends without a search when nothing was started', async () => {
    const watchdog = await startWatchdog({ instanceId: `unused-${process.pid}`, graceMs: 1000 })
    const start = performance.now()
    await watchdog.dismiss()
    assert.ok(performance.now() - start < 200)
    assert.deepEqual(processesOf(`unused-${process.pid}`), [])
    await watchdog.dismiss() // again does no harm
  })

  it('ends as fast when a lease was just told', async () => {
    const mark = `leased-${process.pid}`
    let slow = 0
    for (let round = 0; round < 20; round++) {
      const watchdog = await startWatchdog({ instanceId: mark, graceMs: 1000 })
      watchdog.lease(60_000)
      for (const until = performance.now() + round / 20; performance.now() < until; ); // up to a millisecond, which no timer can
      const start = performance.now()
      await watchdog.dismiss()
      if (performance.now() - start > 240) slow++ // it had to be killed, or this machine is very busy
    }
    assert.ok(slow < 4, `${slow} of 20`)
    assert.deepEqual(processesOf(mark), [])
  })

  it('a shell that is not there, or does not work, is told', async () => {
    const problemOf = async (...shell: [string, ...string[]]) => (await startWatchdog({ instanceId: 'none', graceMs: 1000, shell })).problem
    assert.match((await problemOf('/nowhere/sh')) ?? '', /ENOENT/)
    assert.match((await problemOf('/bin/false')) ?? '', /ended with 1/)
  })
})

function filesOf(pid: number | 'self'): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)]
    } catch {
      return [] // the one that reads the folder
    }
  })
}

/** A process with a watchdog that does `deed` and then kills itself, all in one turn of its event loop. */
function suicide(t: TestContext, deed: string): { child: ChildProcess; mark: string } {
  const mark = `suicide-${process.pid}-${process.hrtime.bigint()}`
  const script = `
    import { spawn } from 'node:child_process'
    import { startWatchdog } from ${JSON.stringify(new URL('../../../src/cli/exec/watchdog.ts', import.meta.url).href)}
    const watchdog = await startWatchdog({ instanceId: '${mark}', graceMs: 1000 })
    const spawnJob = () => spawn('sleep', ['300'], { detached: true, stdio: 'ignore', env: { ...process.env, RUNLEDGER_INSTANCE_ID: '${mark}' } })
    ${deed}
    process.kill(process.pid, 'SIGKILL')`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'ignore', 'inherit'] })
  t.after(() => processesOf(mark).forEach(kill))
  return { child, mark }
}

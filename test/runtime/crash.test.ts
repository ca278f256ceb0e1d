/** Real processes that are killed and stopped: what they held is taken up, what they acknowledged stays, what they say too late is refused. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { it, type TestContext } from 'node:test'
import { Claim } from '../../src/runtime/claim.ts'
import type { Launch } from '../../src/runtime/launch.ts'
import { eachLedger } from '../support/ledgers.ts'

/** A process that holds what `launch` names; it ends with the test at the latest. */
async function holder(t: TestContext, url: string, launch: Launch) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'fixture-holder.ts'), url, JSON.stringify(launch)], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const hear = async () => (await lines.next()).value as string
  assert.equal(await hear(), 'claimed')
  return {
    pid: child.pid!,
    signal: (name: NodeJS.Signals) => void child.kill(name),
    async kill() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
    async do(verb: string) {
      child.stdin.write(`${verb}\n`)
      return hear()
    },
  }
}

eachLedger('crash', (bench) => {
  it('an owner that was killed frees its run at once on the same host: for the next launch of the window, and for the next window', async (t) => {
    const ledger = await bench.open()
    const task = bench.task()
    const first = await holder(t, bench.url, { task, key: 'monday', lease: '1h' })
    const alive = await ledger.claim({ task, key: 'monday' })
    await first.kill()

    const tuesday = await ledger.claim({ task, key: 'tuesday' })
    assert.ok(tuesday instanceof Claim)
    const [due] = await ledger.due(task)
    await tuesday.complete()
    const monday = await ledger.claim({ task, key: 'monday' })

    assert.equal('reason' in alive && alive.reason, 'held', 'while it lived it was held')
    assert.equal(due?.taskKey, `${task}:monday`)
    assert.ok(monday instanceof Claim && monday.attempt === 2 && monday.fence > tuesday.fence)
    assert.deepEqual((await bench.attempts(monday.taskKey)).map(({ outcome, pid }) => [outcome, Number(pid)]), [['conflict', process.pid], ['lost', first.pid]])
  })

  it('an owner that was stopped and goes on after its lease is told so at every verb, and changes nothing', async (t) => {
    const ledger = await bench.open()
    const task = bench.task()
    const stopped = await holder(t, bench.url, { task, key: 'one', lease: '1h' })
    stopped.signal('SIGSTOP')
    await bench.age(`${task}:one`, 3601)
    const successor = await ledger.claim({ task, key: 'one' })
    assert.ok(successor instanceof Claim)
    const before = await bench.recorded(task)

    stopped.signal('SIGCONT')
    const answers = []
    for (const verb of ['heartbeat', 'fail', 'release', 'complete']) answers.push(await stopped.do(verb))

    assert.deepEqual(answers, Array(4).fill('LEASE_LOST'))
    assert.deepEqual(await bench.recorded(task), before)
    await successor.complete()
  })

  it('what was acknowledged is there after the process was killed in the next moment', async (t) => {
    const task = bench.task()
    const one = await holder(t, bench.url, { task, key: 'one' })

    const acknowledged = await one.do('complete')
    await one.kill()

    assert.deepEqual([acknowledged, (await bench.row(`${task}:one`))['status']], ['done', 'completed'])
    const again = await (await bench.open()).claim({ task, key: 'one' })
    assert.equal('reason' in again && again.reason, 'done')
  })
})

/** Heartbeats by our own monotonic clock: an owner that cannot renew gives up before its lease ends, whatever hangs. */
import assert from 'node:assert/strict'
import { beforeEach, describe, it, mock, type TestContext } from 'node:test'
import type { Beat } from '../../src/store/close.ts'
import { Heart, type LossReason } from '../../src/runtime/heart.ts'

const holder = { taskKey: 'task:one', instanceId: 'a', attempt: 1, fence: 1n }
const LEASE = { leaseMs: 1000, heartbeatMs: 200 }

/** A heart under a clock that moves when the test says so. What it does is written down with the time. */
function heartbeats(t: TestContext, answer: (beat: number) => Promise<boolean | Beat> | boolean | Beat, { leaseMs, heartbeatMs } = LEASE, claimedAgo = 0) {
  let now = 1_000_000
  const heard: string[] = []
  const hear = (what: string) => heard.push(`${now - 1_000_000} ${what}`)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(process.hrtime, 'bigint', () => BigInt(Math.round(now * 1e6)))
  let beats = 0
  const beat = async () => {
    hear('beat')
    return beatOf(await answer(++beats))
  }
  const lost = mock.fn((reason: LossReason) => void hear(`lost ${reason}`))
  const heart = new Heart(beat, holder, { leaseMs, heartbeatMs }, now - claimedAgo, { renewed: () => void hear('renewed'), cancelled: () => void hear('cancelled'), missed: (error) => void hear(`missed ${(error as Error).message}`), lost })
  /** In small steps, so that what was awaited goes on in between. */
  const pass = async (ms: number, step = 10) => {
    for (let passed = 0; passed < ms; passed += step) {
      now += step
      t.mock.timers.tick(step)
      for (let turn = 0; turn < 5; turn++) await Promise.resolve()
    }
  }
  t.after(() => heart.stop())
  return { heart, heard, lost, pass }
}

/** Whether the row is still ours stands for the usual answers. */
function beatOf(answer: boolean | Beat): Beat {
  return typeof answer === 'string' ? answer : answer ? 'renewed' : 'lost'
}

const cut = () => Promise.reject(new Error('cut'))
const hang = () => new Promise<boolean>(() => {})

describe('heart', () => {
  beforeEach(() => mock.timers.reset())

  it('beats at its interval for as long as it is renewed, far beyond one lease', async (t) => {
    const { heard, lost, pass } = heartbeats(t, () => true)
    await pass(10_000)
    assert.equal(heard.filter((what) => what.endsWith('renewed')).length, 50)
    assert.equal(lost.mock.callCount(), 0)
  })

  it('says at once that the run was taken, and never beats again', async (t) => {
    const { heard, pass } = heartbeats(t, (beat) => beat < 3)
    await pass(5000)
    assert.deepEqual(heard, ['200 beat', '200 renewed', '400 beat', '400 renewed', '600 beat', '600 lost taken'])
  })

  it('case 80: when no beat gets through it gives up after three quarters of the lease, and says so once', async (t) => {
    const { heard, lost, pass } = heartbeats(t, cut)
    await pass(5000)
    assert.equal(heard.at(-1), '750 lost not_renewed')
    assert.equal(lost.mock.callCount(), 1)
    assert.deepEqual(heard.filter((what) => what.includes('missed')), ['200 missed cut', '400 missed cut', '600 missed cut'])
  })

  it('case 80: a beat that hangs in a black hole does not delay the verdict', async (t) => {
    const { heard, pass } = heartbeats(t, (beat) => (beat === 1 ? true : hang()))
    await pass(5000)
    assert.deepEqual(heard, ['200 beat', '200 renewed', '400 beat', '950 lost not_renewed'])
  })

  it('counts from the moment a renewal was sent, not from when its answer came', async (t) => {
    const slow = Promise.withResolvers<boolean>()
    const { heard, pass } = heartbeats(t, (beat) => (beat === 1 ? slow.promise : hang()))
    await pass(500)
    slow.resolve(true)
    await pass(5000)
    assert.deepEqual([heard[0], heard.at(-1)], ['200 beat', '950 lost not_renewed'])
  })

  it('counts the time that the claim itself took', async (t) => {
    const { heard, pass } = heartbeats(t, cut, LEASE, 300)
    await pass(5000)
    assert.equal(heard.at(-1), '450 lost not_renewed')
  })

  it('a claim that took longer than is safe is lost from the start', async (t) => {
    const { heard, pass } = heartbeats(t, () => true, LEASE, 750)
    await pass(5000)
    assert.deepEqual(heard, ['0 lost not_renewed'])
  })

  it('one beat that gets through in time saves the lease', async (t) => {
    const { lost, pass } = heartbeats(t, (beat) => (beat % 3 === 0 ? true : cut()))
    await pass(10_000)
    assert.equal(lost.mock.callCount(), 0)
  })

  it('tries again soon after a missed beat, also when beats are far apart', async (t) => {
    const { heard, pass } = heartbeats(t, (beat) => (beat === 1 ? cut() : true), { leaseMs: 60_000, heartbeatMs: 12_000 })
    await pass(14_000, 100)
    assert.deepEqual(heard, ['12000 beat', '12000 missed cut', '13000 beat', '13000 renewed'])
  })

  for (const answer of [true, false, cut]) {
    it(`once stopped it neither beats nor complains, though a beat under way still ends as ${typeof answer === 'function' ? 'cut' : answer}`, async (t) => {
      const late = Promise.withResolvers<void>()
      const { heart, heard, pass } = heartbeats(t, () => late.promise.then(() => (typeof answer === 'function' ? answer() : answer)))
      await pass(250)
      heart.stop()
      late.resolve()
      await pass(5000)
      assert.deepEqual(heard, ['200 beat'])
    })
  }

  it('case 16: a lease of months does not overflow its timers', async (t) => {
    const timers = t.mock.method(globalThis, 'setTimeout')
    const heart = new Heart(async () => 'renewed', holder, { leaseMs: 90 * 86_400_000, heartbeatMs: 30 * 86_400_000 }, Number(process.hrtime.bigint()) / 1e6, { lost: () => assert.fail('lost at once') })
    heart.stop()
    const delays = timers.mock.calls.map(({ arguments: [, delay] }) => Number(delay))
    assert.ok(delays.length === 2 && delays.every((delay) => delay > 0 && delay <= 2 ** 31 - 1), delays.join())
  })
})

/** What a caller asks for is checked before any database is touched, and names the key that would be claimed. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cron, every } from '../../src/model/window/schedule.ts'
import { checkLaunch, planLaunch, type Launch } from '../../src/runtime/launch.ts'

const me = { id: 'a', host: 'h', pid: 1, processIdentity: null, launcher: 'test' }

describe('launch', () => {
  it('is keyed by the window of its instant, in the zone of the task', () => {
    const window = cron('0 18 * * *', 'Asia/Shanghai')
    assert.deepEqual(checkLaunch({ task: 'news', window, at: new Date('2026-09-20T10:05:00Z') }), { taskKey: 'news:2026-09-20-18:00' })
    const { request } = planLaunch({ task: 'news', window, at: new Date('2026-09-20T10:05:00Z') }, me)
    assert.deepEqual(request.window, { start: new Date('2026-09-20T10:00:00Z'), end: new Date('2026-09-21T10:00:00Z'), zone: 'Asia/Shanghai' })
  })

  it('case 19: a little early belongs to the window it was meant for, two seconds unless asked otherwise', () => {
    const at = (instant: string, more: Partial<Launch> = {}) => checkLaunch({ task: 'news', window: every('1h'), at: new Date(instant), ...more }).taskKey
    assert.equal(at('2026-09-20T11:59:59.998Z'), 'news:2026-09-20-12:00')
    assert.equal(at('2026-09-20T11:59:57.999Z'), 'news:2026-09-20-11:00')
    assert.equal(at('2026-09-20T11:59:30Z', { early: '30s' }), 'news:2026-09-20-12:00')
    assert.equal(at('2026-09-20T11:59:59.999Z', { early: 0 }), 'news:2026-09-20-11:00')
  })

  it('is keyed by a label of its own, or by none that could be known before', () => {
    assert.deepEqual(checkLaunch({ task: 'import', key: 'file 7.csv' }), { taskKey: 'import:file 7.csv' })
    assert.deepEqual(checkLaunch({ task: 'import' }), { taskKey: null })
    const keys = [1, 2].map(() => planLaunch({ task: 'import' }, me).request.taskKey)
    assert.notEqual(keys[0], keys[1])
  })

  it('excludes overlap within its task, unless it is allowed', () => {
    assert.equal(planLaunch({ task: 'news', key: 'x' }, me).request.concurrencyKey, 'news')
    assert.equal(planLaunch({ task: 'news', key: 'x', overlap: 'allow' }, me).request.concurrencyKey, null)
  })

  it('survives a crash by default, but a manual run is not repeated, and a failure is final unless attempts are asked for', () => {
    assert.deepEqual([planLaunch({ task: 't', key: 'x' }, me).retry, planLaunch({ task: 't' }, me).retry, planLaunch({ task: 't', maxAttempts: 5 }, me).retry].map(({ maxAttempts, afterFailure }) => [maxAttempts, afterFailure]), [[3, false], [1, false], [5, true]])
  })

  const refused: [string, Partial<Launch>, string][] = [
    ['no task', { task: '' }, 'task'],
    ['a task with a space', { task: 'daily news' }, 'task'],
    ['a task of 101 characters', { task: 'x'.repeat(101) }, 'task'],
    ['a key with a line break', { key: 'a\nb' }, 'key'],
    ['an empty key', { key: '' }, 'key'],
    ['a key that with its task is longer than 200', { key: 'x'.repeat(199) }, 'key'],
    ['a key and a schedule', { key: 'x', window: every('1h') }, 'key'],
    ['no instant', { at: new Date('yesterday') }, 'at'],
    ['an unknown policy', { overlap: 'maybe' as 'skip' }, 'overlap'],
    ['waiting for ever', { overlap: 'wait' }, 'wait-timeout'],
    ['waiting without a policy that waits', { waitTimeout: '5s' }, 'wait-timeout'],
    ['waiting for no time', { overlap: 'wait', waitTimeout: 0 }, 'wait-timeout'],
    ['case 81: a lease with no room for three heartbeats', { lease: '30s', heartbeat: '10001ms' }, 'lease'],
    ['no attempts', { maxAttempts: 0 }, 'max-attempts'],
    ['half an attempt', { maxAttempts: 1.5 }, 'max-attempts'],
    ['a negative backoff', { backoff: -1 }, 'backoff'],
    ['a negative early', { early: -1 }, 'early'],
  ]
  for (const [what, options, option] of refused) {
    it(`refuses ${what}, and names the option`, () => {
      assert.throws(() => checkLaunch({ task: 'task', ...options }), (error: Error & { code?: string; facts?: { option?: string } }) => error.code === 'INVALID_OPTION' && error.facts?.option === option && error.message.startsWith(`INVALID_OPTION: ${option}: `))
    })
  }
})

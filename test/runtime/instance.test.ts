/** Who we are, as it stands in the rows: a new name at each start, never longer than its column. */
import assert from 'node:assert/strict'
import os from 'node:os'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, describe, it, mock } from 'node:test'
import { newInstance, findLauncher } from '../../src/runtime/instance.ts'
import { claim } from '../../src/store/claim.ts'
import { readRun } from '../../src/store/read-run.ts'
import { eachLedger, nobodyDied, request } from '../support/ledgers.ts'

function hostnameIs(name: string): void {
  mock.method(os, 'hostname', () => name)
  syncBuiltinESMExports()
}

afterEach(() => {
  mock.restoreAll()
  syncBuiltinESMExports()
})

describe('instance', () => {
  it('each start has an id of its own, and later ones sort later', () => {
    const ids = Array.from({ length: 100 }, () => newInstance().id)
    assert.equal(new Set(ids).size, 100)
    assert.match(ids[0]!, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.ok(ids[0]! <= ids[99]!)
  })

  it('an id that the caller knew before is used', () => {
    assert.equal(newInstance('0199-known').id, '0199-known')
  })

  it('case 50: an id longer than its column, empty, or not printable is refused before SQL', () => {
    for (const id of ['x'.repeat(37), '', 'a\nb', ' a']) assert.throws(() => newInstance(id), { code: 'INVALID_OPTION' }, JSON.stringify(id))
  })

  it('case 50: with more helpers than its column holds there is no proof of its death, rather than a false one', () => {
    assert.equal(newInstance(undefined, Array(40).fill(process.pid)).processIdentity, null)
    assert.equal(newInstance(undefined, [process.ppid]).processIdentity?.split('/').length, 4)
  })

  it('RUNLEDGER_LAUNCHER overrules, and is cleaned and bounded', () => {
    assert.equal(findLauncher({ RUNLEDGER_LAUNCHER: 'systemd:news.timer' }), 'systemd:news.timer')
    assert.equal(findLauncher({ RUNLEDGER_LAUNCHER: 'a b\n💥' }), 'a_b___')
    process.env['RUNLEDGER_LAUNCHER'] = 'x'.repeat(300)
    assert.equal(newInstance().launcher, 'x'.repeat(100))
    delete process.env['RUNLEDGER_LAUNCHER']
  })

  it('without it the launcher is what started us, never nothing', () => {
    assert.match(findLauncher({}), /^.+$/)
  })
})

eachLedger('instance', (bench) => {
  for (const [what, name] of [['253 characters', 'h'.repeat(253)], ['a pod and its namespace', `${'p'.repeat(63)}.${'n'.repeat(63)}`], ['more than any host may', 'h'.repeat(300)]] as const) {
    it(`case 50: a host name of ${what} can claim, and stays apart from others that begin alike`, async () => {
      hostnameIs(name)
      const task = bench.task()
      const [one, other] = [newInstance(), newInstance()]

      const outcomes = [await claim(bench.store, request(task, 'one', { instance: one }), nobodyDied), await claim(bench.store, request(task, 'one', { instance: other }), nobodyDied)]

      assert.deepEqual(outcomes.map((outcome) => ('reason' in outcome ? outcome.reason : outcome.status)), ['claimed', 'held'])
      const run = await readRun(bench.store, `${task}:one`)
      assert.deepEqual([run?.host, run?.instanceId], [name.slice(0, 255), one.id])
    })
  }
})

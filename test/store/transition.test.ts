/** One guarded write moves runs between states: every move of the design, nothing else, and nobody beside it. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { KyselyPlugin } from 'kysely'
import { isLedgerError } from '../../src/model/errors.ts'
import { MOVES, STATUSES, type Move, type Status } from '../../src/model/states.ts'
import type { Claimed } from '../../src/store/claim.ts'
import { complete, fail } from '../../src/store/close.ts'
import { queueRun } from '../../src/store/queue-run.ts'
import { transition, type Transition } from '../../src/store/transition.ts'
import { eachLedger, request } from '../support/ledgers.ts'

eachLedger('transition', (bench) => {
  const moves = Object.keys(MOVES) as Move[]

  /** A run in a state, and the holder that a caller of a move would name. */
  async function runIn(status: Status): Promise<Claimed> {
    const asked = request(bench.task())
    if (status === 'pending') {
      await queueRun(bench.store, asked)
      return { status: 'claimed', taskKey: asked.taskKey, instanceId: asked.instance.id, attempt: 0, fence: 0n, maxAttempts: asked.maxAttempts }
    }
    const held = await bench.claim(asked)
    if (status === 'completed') await complete(bench.store, held, {})
    if (status === 'failed') await fail(bench.store, held, 'error', {}, null)
    return held
  }

  async function move(name: Move, of: Claimed): Promise<boolean> {
    const { store } = bench
    const owned = { instance_id: of.instanceId, started_at: store.now(), heartbeat_at: store.now(), lease_seconds: 60, attempt: of.attempt + 1 }
    const wanted: Transition = { move: name, of, set: name === 'take' ? owned : {}, reason: 'error' }
    return store.transaction((tx) => transition(store, tx, wanted))
  }

  for (const name of moves) {
    const { from, to, history } = MOVES[name]
    it(`${name} moves a ${from} run to ${to} and leaves ${history ?? 'no line'}`, async () => {
      const of = await runIn(from)

      assert.equal(await move(name, of), true)

      const row = await bench.row(of.taskKey)
      assert.deepEqual([row['status'], row['active_key'], row['finished_at'] !== null], [to, null, to === 'completed' || to === 'failed'])
      assert.deepEqual(await bench.outcomes(of.taskKey), history === null ? [] : [history])
    })

    it(`${name} refuses a run in any other state and changes nothing`, async () => {
      for (const status of STATUSES.filter((other) => other !== from)) {
        const of = await runIn(status)
        const before = [await bench.row(of.taskKey), await bench.attempts(of.taskKey)]

        assert.equal(await move(name, of), false, status)
        assert.deepEqual([await bench.row(of.taskKey), await bench.attempts(of.taskKey)], before)
      }
    })
  }

  it('a write that would move two rows is a bug, said loudly and rolled back', async () => {
    const { store } = bench
    const of = await runIn('processing')
    const before = await bench.row(of.taskKey)
    const twoRows: KyselyPlugin = { transformQuery: ({ node }) => node, transformResult: async ({ result }) => ({ ...result, numAffectedRows: 2n }) }

    await assert.rejects(store.transaction((tx) => transition(store, tx.withPlugin(twoRows), { move: 'complete', of })), (error) => isLedgerError(error) && error.code === 'INTERNAL' && error.facts['taskKey'] === of.taskKey)
    assert.deepEqual(await bench.row(of.taskKey), before)
  })
})

describe('moves', () => {
  const files = readdirSync(join(import.meta.dirname, '../../src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => ({ file, code: readFileSync(join(import.meta.dirname, '../../src', file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '') }))
  const filesWith = (pattern: RegExp) => files.filter(({ code }) => pattern.test(code)).map(({ file }) => file)

  it('are those of the design, between its states, and a run that is over moves nowhere', () => {
    const drawn = ['pending -> processing', 'processing -> completed', 'processing -> failed', 'processing -> pending']
    assert.deepEqual([...new Set(Object.values(MOVES).map(({ from, to }) => `${from} -> ${to}`))].toSorted(), drawn)
    assert.deepEqual(STATUSES, ['pending', 'processing', 'completed', 'failed'])
  })

  it('each is made by some verb', () => {
    for (const name of Object.keys(MOVES)) assert.notDeepEqual(filesWith(new RegExp(`'${name}'`)).filter((file) => file.startsWith('store/')), [], name)
  })

  it('no other code updates a run, but the heartbeat, which writes nothing but itself, and prune, which takes what runs carry', () => {
    assert.deepEqual(filesWith(/updateTable\(\s*['"`]task_runs/), ['store/close.ts', 'store/prune.ts', 'store/transition.ts'])
    const taken = files.find(({ file }) => file === 'store/prune.ts')!.code.match(/updateTable\('task_runs'\)\s*\.set\(.*\)/g)
    assert.deepEqual(taken?.map((text) => text.replace(/\s+/g, '')), [`updateTable('task_runs').set({output_tail:null,result:null,...(batch.status==='completed'&&{payload:null})})`])
    const sets = files.find(({ file }) => file === 'store/close.ts')!.code.match(/\.set\(.*\)/g)
    assert.deepEqual(sets, ['.set({ heartbeat_at: store.now() })'])
  })

  it('rows are inserted as processing by a claim, as pending by the queue, and by nobody else', () => {
    assert.deepEqual(filesWith(/insertInto\(\s*['"`]task_runs|insertFenced\(\{/), ['store/claim.ts', 'store/queue-run.ts'])
    assert.deepEqual(filesWith(/\bstatus: '(pending|processing|completed|failed)'/).filter((file) => file.startsWith('store/')), ['store/claim.ts', 'store/queue-run.ts'])
  })

  it('nobody writes them in raw SQL', () => {
    assert.deepEqual(filesWith(/\b(update|delete from|insert into|replace into)\s+\S{0,30}task_runs/i).filter((file) => file.startsWith('store/') || file.startsWith('runtime/')), [])
  })
})

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
      const before = await bench.outcomes(of.taskKey)

      assert.equal(await move(name, of), true)

      const row = await bench.row(of.taskKey)
      assert.deepEqual([row['status'], row['active_key'], row['finished_at'] !== null], [to, null, to === 'completed' || to === 'failed'])
      assert.deepEqual(await bench.outcomes(of.taskKey), [...before, ...(history === null ? [] : [history])])
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

  it('no move is made by a writer that believes in another attempt', async () => {
    for (const name of moves) {
      const of = await runIn(MOVES[name].from)
      const before = await bench.row(of.taskKey)
      assert.equal(await move(name, { ...of, attempt: of.attempt + 1 }), false, name)
      assert.deepEqual(await bench.row(of.taskKey), before)
    }
  })

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
  /** What the updates of a file set: up to the condition, where that stands in the same line. */
  const setsOf = (name: string) => [...files.find(({ file }) => file === name)!.code.matchAll(/\.set\((\{|inLine).*\)/g)].map(([text]) => text.split('.where(')[0]!)
  const filesWith = (pattern: RegExp) => files.filter(({ code }) => pattern.test(code)).map(({ file }) => file)

  it('are those of the design, between its states, and a run that is over moves only by an operator', () => {
    const arrows = (moves: readonly (readonly [string, { from: string; to: string }])[]) => [...new Set(moves.map(([, { from, to }]) => `${from} -> ${to}`))].toSorted()
    const isOperators = ([name]: readonly [string, unknown]) => ['cancel', 'reopen', 'redo'].includes(name)
    const moves = Object.entries(MOVES)
    assert.deepEqual(arrows(moves.filter((move) => !isOperators(move))), ['pending -> processing', 'processing -> completed', 'processing -> failed', 'processing -> pending'])
    assert.deepEqual(arrows(moves.filter(isOperators)), ['completed -> pending', 'failed -> pending', 'pending -> failed'])
    assert.deepEqual(STATUSES, ['pending', 'processing', 'completed', 'failed'])
  })

  it('each is made by some verb', () => {
    for (const name of Object.keys(MOVES)) assert.notDeepEqual(filesWith(new RegExp(`'${name}'`)).filter((file) => file.startsWith('store/')), [], name)
  })

  it('no other code updates a run, but heartbeats, the request to cancel, what prune empties and the place in line, which write nothing but themselves', () => {
    const files = filesWith(/updateTable\(\s*['"`]task_runs/).toSorted()
    assert.deepEqual(files, ['store/close.ts', 'store/heartbeat-batch.ts', 'store/operate.ts', 'store/probe-write.ts', 'store/prune.ts', 'store/sweep-line.ts', 'store/tend-line.ts', 'store/transition.ts'])
    const beat = '.set({ heartbeat_at: store.now() })'
    assert.deepEqual(setsOf('store/close.ts'), [beat])
    for (const file of ['store/heartbeat-batch.ts', 'store/probe-write.ts']) assert.deepEqual(setsOf(file), [beat], file)
    assert.deepEqual(setsOf('store/prune.ts')[1], ".set({ output_tail: null, result: null, ...(batch.status === 'completed' && { payload: null }) })")
    assert.deepEqual(setsOf('store/operate.ts'), ['.set({ cancel_requested_at: sql`coalesce(cancel_requested_at, ${store.now()})` })'])
    for (const file of ['store/sweep-line.ts', 'store/tend-line.ts']) assert.deepEqual(setsOf(file).filter((set) => set !== '.set(inLine())' && set !== '.set({ ready_queue: null })'), [], file)
  })

  it('many at once move by the same table of moves, and only where no line of history is left', () => {
    const { code } = files.find(({ file }) => file === 'store/transition-batch.ts')!
    assert.deepEqual(/readonly move: '(\w+)' \| '(\w+)'/.exec(code)?.slice(1), ['take', 'complete'])
    for (const name of ['take', 'complete'] as const) assert.equal(MOVES[name].history, null)
    assert.deepEqual(filesWith(/updateSelected\(/).filter((file) => file.startsWith('store/')), ['store/transition-batch.ts'])
  })

  it('rows are inserted as processing by a claim, as pending by the queue and by catching up, and by nobody else', () => {
    assert.deepEqual(filesWith(/insertInto\(\s*['"`]task_runs|insertFenced\(\{/), ['store/catch-up.ts', 'store/claim.ts', 'store/queue-run.ts'])
    assert.deepEqual(filesWith(/\bstatus: '(pending|processing|completed|failed)'(?! \|)/).filter((file) => file.startsWith('store/')), ['store/claim.ts', 'store/queue-run.ts'])
  })

  it('nobody writes them in raw SQL, but the guarded write for many', () => {
    assert.deepEqual(filesWith(/\b(update|delete from|insert into|replace into)\s+\S{0,30}task_runs/i).filter((file) => file.startsWith('store/') || file.startsWith('runtime/')), ['store/transition-batch.ts'])
    assert.deepEqual(filesWith(/insertAbsent\([^)]*'task_runs'/).filter((file) => file.startsWith('store/')), ['store/enqueue.ts'])
  })
})

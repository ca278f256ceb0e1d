/** Every state that two instances, two windows, an expiry and a reaper can reach is sound, and the real ledger agrees with each step. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isLedgerError } from '../../src/index.ts'
import type { Claim } from '../../src/runtime/claim.ts'
import type { Ledger } from '../../src/runtime/ledger.ts'
import { readRun } from '../../src/store/read-run.ts'
import { seeded } from '../../src/proof/random.ts'
import { eachLedger, type Bench } from '../support/ledgers.ts'
import { apply, COMMANDS, isHeldBy, KEYS, MAX_ATTEMPTS, NOTHING, violated, type Command, type Key, type Model } from './run-model.ts'

/** An operator acts once, or with RUNLEDGER_PROOF_STATES=all once in each way (200,000 states); a run is given back once, and a lease runs out once. */
const OPERATOR: readonly Command['do'][] = ['cancel', 'retry', 'redo', 'free']
const RARE: readonly (readonly Command['do'][])[] = [['expire'], ['give back'], ...(process.env['RUNLEDGER_PROOF_STATES'] === 'all' ? OPERATOR.map((verb) => [verb]) : [OPERATOR])]

interface Reached {
  readonly model: Model
  readonly story: readonly Command[]
}

/** All states, nearest first, each with the shortest story that leads to it. Fences and histories grow for ever and are not told apart. */
function reachable(): Reached[] {
  const found: Reached[] = [{ model: NOTHING, story: [] }]
  const seen = new Set([nameOf(found[0]!)])
  for (let at = 0; at < found.length; at++) {
    const { model, story } = found[at]!
    for (const command of COMMANDS) {
      if (RARE.some((verbs) => verbs.includes(command.do) && isSpent(story, verbs))) continue
      const next = { model: apply(model, command).model, story: [...story, command] }
      const name = nameOf(next)
      if (seen.has(name)) continue
      seen.add(name)
      found.push(next)
    }
  }
  return found
}

function isSpent(story: readonly Command[], verbs: readonly Command['do'][]): boolean {
  return story.some((one) => verbs.includes(one.do))
}

function nameOf({ model, story }: Reached): string {
  const runs = KEYS.map((key) => {
    const run = model.runs[key]
    return run && [run.status, run.attempt, run.maxAttempts, run.who, run.leaseOver, run.cancelAsked]
  })
  const holding = Object.entries(model.beliefs).map(([name, belief]) => {
    const [who, key] = name.split(' ') as ['0' | '1', 'a' | 'b']
    return `${name} ${isHeldBy(model.runs[key]!, Number(who) as 0 | 1, belief)}`
  })
  return JSON.stringify([runs, holding.toSorted(), RARE.map((verbs) => isSpent(story, verbs))])
}

const STATES = reachable()
const STORIES = Number(process.env['RUNLEDGER_PROOF_STORIES'] ?? 25)

describe('model', () => {
  it('every reachable state satisfies the invariants, and every step goes by the table of moves', () => {
    assert.ok(STATES.length > 2_000, `only ${STATES.length} states`)
    for (const { model, story } of STATES) assert.deepEqual(violated(model), [], tell(story))
    const statuses = new Set(STATES.flatMap(({ model }) => Object.values(model.runs).map(({ status }) => status)))
    assert.equal(statuses.size, 4)
  })
})

eachLedger('model', (bench) => {
  it(`the ledger agrees with the model in each step of ${STORIES} stories that lead far`, async () => {
    const random = seeded(6)
    const far = STATES.slice(-STATES.length / 2)
    for (let n = 0; n < STORIES; n++) await act(bench, far[Math.floor(random() * far.length)]!.story)
  })

  it(`the ledger agrees with the model in each step of ${STORIES} stories of chance`, async () => {
    await fc.assert(fc.asyncProperty(fc.array(fc.constantFrom(...COMMANDS), { minLength: 8, maxLength: 24 }), (story) => act(bench, story)), { numRuns: STORIES, endOnFailure: true })
  })
})

/** Plays a story on a task of its own, and compares what is told and what is recorded after every step. */
async function act(bench: Bench, story: readonly Command[]): Promise<void> {
  const task = bench.task()
  const ledgers = await crew(bench)
  const claims = new Map<string, Claim>()
  const conflicts: Record<Key, string[]> = { a: [], b: [] }
  let model = NOTHING
  for (const [step, command] of story.entries()) {
    const { model: after, told } = apply(model, command)
    const where = `${tell(story.slice(0, step + 1))}: ${told}`
    assert.equal(await carryOut(bench, task, ledgers, claims, command), told, where)
    model = after
    if (command.do === 'claim' && !told.startsWith('claimed')) conflicts[command.key].push(told)
    await Promise.all(KEYS.map((key) => compare(bench, `${task}:${key}`, after.runs[key], conflicts[key], where)))
  }
  await Promise.all([...claims.values()].map((claim) => claim.release().catch(() => {}))) // What is still held would be renewed for ever.
}

const ledgersOf = new WeakMap<Bench, Promise<Ledger[]>>()

function crew(bench: Bench): Promise<Ledger[]> {
  const known = ledgersOf.get(bench) ?? Promise.all([bench.open(), bench.open()])
  ledgersOf.set(bench, known)
  return known
}

async function carryOut(bench: Bench, task: string, ledgers: readonly Ledger[], claims: Map<string, Claim>, command: Command): Promise<string> {
  const [ledger] = ledgers as [Ledger]
  if (command.do === 'reap') return (await ledger.reap()).map(({ run }) => run.taskKey).filter((key) => key.startsWith(`${task}:`)).map((key) => key.slice(task.length + 1)).join(' ')
  const taskKey = `${task}:${command.key}`
  if (command.do === 'expire') {
    const run = await readRun(bench.store, taskKey)
    if (run?.status === 'processing') await bench.age(taskKey, 2 * 3600)
    return 'time'
  }
  if (command.do === 'claim') return claim(ledgers[command.who]!, task, command, claims)
  if ('who' in command) return asHolder(claims.get(`${command.who} ${command.key}`), command.do)
  return operate(ledger, taskKey, command.do)
}

function operate(ledger: Ledger, taskKey: string, verb: 'cancel' | 'retry' | 'redo' | 'free'): Promise<string> {
  const { operator } = ledger
  const operations = { cancel: () => operator.cancel(taskKey), retry: () => operator.retry(taskKey), redo: () => operator.retry(taskKey, { force: true }), free: () => operator.release(taskKey, { force: true }) }
  return answer(async () => (await operations[verb]()).status)
}

async function claim(ledger: Ledger, task: string, { who, key }: Extract<Command, { who: unknown }>, claims: Map<string, Claim>): Promise<string> {
  const outcome = await ledger.claim({ task, key, lease: '1h', maxAttempts: MAX_ATTEMPTS, backoff: 0 })
  if (outcome.status !== 'claimed') return 'reason' in outcome ? outcome.reason : outcome.status
  claims.set(`${who} ${key}`, outcome)
  return `claimed ${outcome.attempt} ${outcome.fence}`
}

async function asHolder(held: Claim | undefined, verb: string): Promise<string> {
  if (!held) return 'nothing to do it with'
  return answer(async () => {
    if (verb === 'heartbeat') await held.heartbeat()
    if (verb === 'complete') await held.complete()
    if (verb === 'give back') await held.release()
    if (verb !== 'fail') return 'done'
    const { retryInMs, cancelled } = await held.fail('bad luck')
    return cancelled ? 'cancelled' : retryInMs === null ? 'over' : 'again'
  })
}

async function answer(ask: () => Promise<string>): Promise<string> {
  try {
    return await ask()
  } catch (error) {
    if (isLedgerError(error)) return error.code
    throw error
  }
}

async function compare(bench: Bench, taskKey: string, expected: Model['runs']['a'], conflicts: readonly string[], where: string): Promise<void> {
  const [row, lines] = await Promise.all([bench.store.db.selectFrom('task_runs').selectAll().where('task_key', '=', taskKey).executeTakeFirst(), bench.outcomes(taskKey)])
  const seen = row && { status: row.status, attempt: row.attempt, maxAttempts: row.max_attempts, fence: Number(row.fence), holdsKey: row.active_key !== null, cancelAsked: row.status === 'processing' && row.cancel_requested_at !== null }
  assert.deepEqual(seen, expected && { status: expected.status, attempt: expected.attempt, maxAttempts: expected.maxAttempts, fence: expected.fence, holdsKey: expected.status === 'processing', cancelAsked: expected.status === 'processing' && expected.cancelAsked }, where)
  assert.deepEqual(lines.filter((line) => !line.startsWith('conflict ')), expected?.lines ?? [], where)
  assert.deepEqual(lines.filter((line) => line.startsWith('conflict ')), conflicts.map((reason) => `conflict ${reason}`), where)
}

function tell(story: readonly Command[]): string {
  return story.map((command) => [command.do, 'key' in command ? command.key : '', 'who' in command ? command.who : ''].join(' ').trim()).join(', ')
}

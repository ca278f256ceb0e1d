/** Every verb of the ledger once: for databases, schemas and users under which all of them must work. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { every } from '../../src/model/window/schedule.ts'
import type { LedgerOptions } from '../../src/runtime/ledger-options.ts'
import { openLedger, type Ledger } from '../../src/runtime/ledger.ts'
import { migrate, migrationStatus } from '../../src/runtime/schema.ts'
import { awayFromTheHour } from './hour.ts'

export async function useAll(t: TestContext, url: string): Promise<void> {
  await migrate(url)
  assert.deepEqual(await migrate(url), [])
  assert.ok((await migrationStatus(url)).every(({ appliedAt }) => appliedAt !== null))
  await useLedger(t, url)
}

/** All but the migrations. */
export async function useLedger(t: TestContext, url: string): Promise<void> {
  const [ledger, later] = [await open(t, url), await open(t, url, { clock: { offsetMs: 120_000 } })]
  const launch = { task: 'all', key: 'a', maxAttempts: 3, backoff: 0 }
  const first = claimedOf(await ledger.claim(launch))
  await first.heartbeat()
  assert.equal((await ledger.claim(launch)).status, 'conflict')
  assert.equal((await ledger.claim({ ...launch, key: 'b', overlap: 'queue' })).status, 'queued')
  await first.fail('broken')
  for (const run of await ledger.due('all')) await claimedOf(await ledger.takeUp(run, launch)).release()
  claimedOf(await ledger.claim(launch))
  const takenOver = claimedOf(await later.claim(launch))
  await takenOver.complete()
  claimedOf(await ledger.claim({ task: 'left', key: 'a' }))
  assert.deepEqual((await later.reap()).map(({ run }) => run.taskKey), ['left:a'])
  await effectsAndFences(ledger)
  assert.equal((await ledger.show('all:a')).history.at(-1)?.outcome, 'completed')
  assert.equal((await ledger.runs()).length, 4)
  await tasksOf(ledger, later)
  await queueOf(ledger)
}

async function tasksOf(ledger: Ledger, later: Ledger): Promise<void> {
  await awayFromTheHour()
  const launch = { task: 'hourly', window: every('1h') }
  const threeHoursAgo = new Date(Date.now() - 3 * 3_600_000)
  assert.equal(await ledger.tasks.learn(launch), null)
  assert.deepEqual((await ledger.tasks.launchers()).map(({ task, schedule }) => [task, schedule]), [['hourly', '1h']])
  assert.equal((await ledger.tasks.set('hourly', { catchUp: 'all', graceMs: 0, since: threeHoursAgo })).catchUp, 'all')
  assert.equal((await later.tasks.learn({ ...launch, window: every('2h') }))?.task.schedule, '1h')
  await ledger.tasks.set('hourly', { schedule: every('1h'), since: threeHoursAgo })
  assert.equal((await ledger.tasks.missing({ task: 'hourly' })).windows.length, 3)
  assert.equal((await ledger.tasks.catchUp(launch))?.queued.length, 2)
  assert.deepEqual((await ledger.tasks.problems({ task: 'hourly' })).map(({ kind }) => kind), ['overdue'])
  assert.deepEqual((await ledger.tasks.backfill({ task: 'hourly', from: threeHoursAgo, to: new Date() })).map(({ action }) => action), ['run', 'run', 'run'])
  await ledger.tasks.recordBackfill('hourly', {})
  await assert.rejects(ledger.run({ task: 'failing', key: 'a' }, () => Promise.reject(new Error('no'))), /no/)
  assert.equal(await ledger.tasks.reopen('failing', { taskKey: 'failing:a', attempt: 1 }, 1), true)
  assert.ok((await later.tasks.measures()).runs.some(({ task, outcome }) => task === 'paid' && outcome === 'completed'))
  assert.ok((await later.tasks.measures()).now.some(({ task, pending }) => task === 'hourly' && pending === 2))
}

async function queueOf(ledger: Ledger): Promise<void> {
  const outcome = await ledger.enqueueMany('queued', [{ key: 'a', payload: 1 }, { key: 'a' }, { key: 'b', concurrencyKey: 'k' }, { key: 'c', concurrencyKey: 'k' }, { key: 'd', availableAt: 1 }])
  assert.deepEqual(outcome.map(({ duplicate }) => duplicate), [false, true, false, false, false])
  const done: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const worker = await ledger.worker({ poll: '50ms', handlers: { queued: (_payload, run) => void done.push(run.taskKey) }, onEvent: ({ event }) => void (event === 'completed' && worker.status().completed === 4 && resolve()) })
  await promise
  await worker.stop()
  assert.deepEqual(done.toSorted(), ['queued:a', 'queued:b', 'queued:c', 'queued:d'])
}

async function effectsAndFences(ledger: Ledger): Promise<void> {
  const claim = claimedOf(await ledger.claim({ task: 'paid', key: 'a' }))
  assert.deepEqual(await claim.effect('charge', () => ({ paid: 7 })), { paid: 7 })
  await assert.rejects(claim.effect('mail', () => Promise.reject(new Error('no answer'))))
  assert.deepEqual((await ledger.effects.list({ inDoubt: true })).map(({ name }) => name), ['mail'])
  await ledger.effects.resolve('paid:a#mail', { verdict: 'not_done', by: 'ann' })
  await ledger.fences.check('report', claim.fence + 1n)
  await assert.rejects(ledger.fences.check('report', claim.fence), { code: 'STALE_FENCE' })
  assert.equal(await claim.transaction(async () => 'written'), 'written')
  assert.ok((await ledger.fences.bump(10n)) >= 10n)
}

async function open(t: TestContext, url: string, options: LedgerOptions = {}): Promise<Ledger> {
  const ledger = await openLedger(url, { heartbeats: 'loop', ...options })
  t.after(() => ledger.close())
  return ledger
}

function claimedOf<T extends { readonly status: string }>(outcome: T): Extract<T, { status: 'claimed' }> {
  assert.equal(outcome.status, 'claimed')
  return outcome as Extract<T, { status: 'claimed' }>
}

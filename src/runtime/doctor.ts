/** Looks at everything around a ledger that has ever gone wrong, one thing after the other, and changes nothing. */
import { sql } from 'kysely'
import { ok, problem, warning, type Checkup } from '../model/checkup.ts'
import type { ClockOffset } from '../dialect/dialect.ts'
import { isLedgerError } from '../model/errors.ts'
import { schemaState } from '../migrate/schema-state.ts'
import { lateHeartbeats, launches, launchesTold, twoSchedules, unreaped } from '../store/checkups.ts'
import { missingRights } from '../store/probe-rights.ts'
import { rightsOf } from '../store/roles.ts'
import type { Store } from '../store/tables.ts'
import { openStore } from './open-store.ts'
import { settle } from './settle.ts'

/** More than this between two clocks makes launches of one minute name two windows. */
const CLOCK_TOLERANCE_MS = 2_000

/** @param clock moves the database's clock, for tests @returns a checkup as it is made. A database that cannot be reached is one as well. @throws INVALID_OPTION for a URL that cannot be read */
export async function* doctor(url: string, patienceMs = 10_000, clock?: ClockOffset): AsyncGenerator<Checkup> {
  const opened = await settle({ diagnose: () => ({ kind: 'other' }), place: '' }, patienceMs, () => openStore(url, clock && { clock })).catch((error: unknown) => unreachable(error))
  if ('check' in opened) return yield opened
  try {
    const answers = await settle(opened, patienceMs, () => sql`select 1 as one`.execute(opened.db)).catch((error: unknown) => unreachable(error))
    if ('check' in answers) return yield answers
    yield ok('connection', opened.place)
    yield* settled(opened, patienceMs, 'server', server)
    yield* settled(opened, patienceMs, 'clock', clocks)
    let isCurrent = true
    for await (const checkup of settled(opened, patienceMs, 'schema', schema)) {
      isCurrent &&= checkup.state === 'ok'
      yield checkup
    }
    // What is not there cannot be looked at.
    if (!isCurrent) return
    yield* settled(opened, patienceMs, 'rights', rights)
    yield* settled(opened, patienceMs, 'rows', rows)
  } finally {
    await opened.close()
  }
}

function unreachable(error: unknown): Checkup {
  if (!isLedgerError(error) || error.code !== 'DATABASE_UNAVAILABLE') throw error
  return problem('connection', error.message.replace(/^[A-Z_]+: /, ''), 'look at the database, the URL and the way there')
}

/** What one look finds; that it cannot look is a problem of its own, and the others look all the same. */
async function* settled(store: Store, patienceMs: number, check: string, look: (store: Store) => Promise<Checkup[]>): AsyncGenerator<Checkup> {
  try {
    yield* await settle(store, patienceMs, () => look(store))
  } catch (error) {
    yield problem(check, error instanceof Error ? error.message.split('\n')[0]! : String(error), 'what stands above it comes first')
  }
}

async function server(store: Store): Promise<Checkup[]> {
  return [...(await store.examine())]
}

async function schema(store: Store): Promise<Checkup[]> {
  const state = await schemaState(store)
  const [unknown, missing] = [state.filter(({ known }) => !known), state.filter(({ appliedAt }) => appliedAt === null)]
  if (unknown.length > 0) return [problem('schema', `has migrations that this version does not know (${unknown.map(({ name }) => name).join(', ')})`, 'install the newer runledger on this host too')]
  if (missing.length > 0) return [problem('schema', `lacks ${missing.map(({ name }) => name).join(', ')}`, 'runledger migrate')]
  return [ok('schema', `current: ${state.length} migrations, the last at ${state.at(-1)!.appliedAt!.toISOString()}`)]
}

/** The database's clock against ours in the middle of the question. */
async function clocks(store: Store): Promise<Checkup[]> {
  const asked = Date.now()
  const { rows } = await sql<{ at: unknown }>`select ${store.now()} as at`.execute(store.db)
  const [answered, theirs] = [Date.now(), store.readInstant(rows[0]!.at)!.getTime()]
  const apart = theirs - (asked + answered) / 2
  const told = `${(Math.abs(apart) / 1000).toFixed(1)}s ${apart < 0 ? 'behind' : 'ahead of'} this host's`
  if (Math.abs(apart) <= CLOCK_TOLERANCE_MS + (answered - asked) / 2) return [ok('clock', `the database's is ${told}`)]
  return [warning('clock', `the database's is ${told}: hosts that launch at the same minute may name two windows`, 'synchronise the clocks (NTP) of this host and of the database')]
}

/** Of the roles in their order, the last that this user can do everything of. */
async function rights(store: Store): Promise<Checkup[]> {
  let role = 'nothing'
  for (const next of ['reader', 'runner', 'operator'] as const) {
    const missing = await missingRights(store, rightsOf(next))
    if (missing.length > 0) {
      const told = `this user can do what a ${role === 'nothing' ? 'stranger' : role} does; ${next === 'operator' ? 'an' : 'a'} ${next} also needs ${missing.slice(0, 6).join(', ')}`
      return [role === 'nothing' ? problem('rights', told, 'runledger grants --role reader') : ok('rights', told)]
    }
    role = next
  }
  return [ok('rights', 'this user can do what an operator does')]
}

async function rows(store: Store): Promise<Checkup[]> {
  const byTask = await launches(store)
  const schedules: Checkup[] = []
  for (const task of byTask.keys()) {
    const found = await twoSchedules(store, task)
    if (found) schedules.push(found)
  }
  return [...launchesTold(byTask), ...schedules, await lateHeartbeats(store), await unreaped(store)]
}

/** Measures every task for a monitoring system, and remembers what has been counted. */
import { isLedgerError } from '../model/errors.ts'
import { addTotals, type EndingTotal, type Measures, type TaskNow } from '../model/measures.ts'
import { scheduleOf, scheduleProblem, type Task } from '../model/task.ts'
import { nextStart } from '../model/window/window.ts'
import { unreachable } from '../dialect/unreachable.ts'
import { doubtsByTask, openRuns } from '../store/open-runs.ts'
import { listTasks, readNow } from '../store/read-task.ts'
import type { Store } from '../store/tables.ts'
import { taskPulses, type TaskPulse } from '../store/task-pulse.ts'
import { addToTotals, attemptEndings, readTotals, runEndings, SETTLED_MS } from '../store/totals.ts'

const EVER = new Date(0)
const MAX_ROUNDS = 3

export async function measure(store: Store): Promise<Measures> {
  const now = await readNow(store)
  const pulses: TaskPulse[] = []
  for await (const pulse of taskPulses(store)) pulses.push(pulse)
  const totals = await countEndings(store, pulses, now)
  return { runs: totals.filter(({ ends }) => ends === 'run'), attempts: totals.filter(({ ends }) => ends === 'attempt'), now: await stateOfTasks(store, pulses, now) }
}

/** Only what is settled, and what was counted once stays counted: a counter that fell by one would look like a restart. */
async function countEndings(store: Store, pulses: readonly TaskPulse[], now: Date): Promise<EndingTotal[]> {
  const before = new Date(now.getTime() - SETTLED_MS)
  for (let round = 1; ; round++) {
    const { mark, totals } = await readTotals(store)
    const from = mark?.before ?? EVER
    if (from >= before) return totals
    const counted = await endings(store, pulses, from, before)
    // Who may only read, or was overtaken again and again, has the same sum and leaves the adding to others.
    if (round === MAX_ROUNDS || (await added(store, mark, before, counted)) !== 'overtaken') return addTotals(totals, counted)
  }
}

type ReadMark = Awaited<ReturnType<typeof readTotals>>['mark']

async function added(store: Store, mark: ReadMark, before: Date, counted: readonly EndingTotal[]): Promise<'added' | 'overtaken' | 'refused'> {
  try {
    return (await addToTotals(store, mark, before, counted)) ? 'added' : 'overtaken'
  } catch (error) {
    const known = unreachable(store.diagnose, store.place, error)
    if (isLedgerError(known) && known.code === 'DATABASE_UNAVAILABLE') return 'refused'
    throw error
  }
}

async function endings(store: Store, pulses: readonly TaskPulse[], from: Date, to: Date): Promise<EndingTotal[]> {
  const counted = await attemptEndings(store, from, to)
  for (const { name, lastSuccessAt, lastFailureAt } of pulses) {
    if (lastSuccessAt && lastSuccessAt >= from) counted.push(...(await runEndings(store, name, 'completed', from, to)))
    if (lastFailureAt && lastFailureAt >= from) counted.push(...(await runEndings(store, name, 'failed', from, to)))
  }
  return counted
}

async function stateOfTasks(store: Store, pulses: readonly TaskPulse[], now: Date): Promise<TaskNow[]> {
  const open = await openRuns(store)
  const doubts = await doubtsByTask(store)
  const tasks = new Map((await listTasks(store)).map((task) => [task.name, task]))
  const endings = new Map(pulses.map((pulse) => [pulse.name, pulse]))
  const names = [...new Set([...tasks.keys(), ...endings.keys(), ...open.keys(), ...doubts.keys()])].toSorted()
  return names.map((task) => ({
    task,
    ...(open.get(task) ?? { pending: 0, processing: 0, expiredLeases: 0, oldestPendingAt: null }),
    effectsInDoubt: doubts.get(task) ?? 0,
    lastSuccessAt: endings.get(task)?.lastSuccessAt ?? null,
    lastFailureAt: endings.get(task)?.lastFailureAt ?? null,
    nextDueAt: nextDue(tasks.get(task), now),
  }))
}

function nextDue(task: Task | undefined, now: Date): Date | null {
  const schedule = task && scheduleProblem(task) === null ? scheduleOf(task) : null
  return schedule ? nextStart(schedule, now) : null
}

/** Puts runs in line: new keys by one INSERT for many, and a key that is there already, in whatever state, stays as it is. */
import { sql } from 'kysely'
import type { Column, Pick } from '../dialect/absent-rows.ts'
import { positionNow } from './line.ts'
import type { Db, Store } from './tables.ts'

export interface NewRun {
  readonly taskKey: string
  readonly task: string
  readonly queue: string
  /** Lower first. */
  readonly priority: number
  /** An instant, seconds from now, or null for now. */
  readonly availableAt: Date | number | null
  readonly concurrencyKey: string | null
  readonly concurrencyLimit: number
  readonly maxAttempts: number
  readonly backoffSeconds: number
  readonly timeoutSeconds: number | null
  /** JSON; null for none. */
  readonly payload: string | null
}

/**
 * One statement a kind (due now, due later), so the caller gives no more than one statement may carry.
 * @param areNew nobody else can have these keys
 * @returns the keys that were there already; the others are new
 */
export async function insertRuns(store: Store, db: Db, runs: readonly NewRun[], areNew = false): Promise<string[]> {
  const there: string[] = []
  for (const [kind, nths] of Map.groupBy(runs.keys(), (nth) => KINDS.find(({ takes }) => takes(runs[nth]!))!)) {
    // In the order of their keys, so that two who enqueue the same ones wait for each other instead of deadlocking.
    nths.sort((a, b) => (runs[a]!.taskKey < runs[b]!.taskKey ? -1 : 1))
    const part = nths.map((nth) => runs[nth]!)
    const columns = [...columnsOf(part), { name: 'nth', type: 'integer' as const, values: nths }, ...kind.columns(store, part)]
    const once = { at: store.now(), base: positionNow(store) }
    const added = await store.insertAbsent(db, { table: 'task_runs', key: 'task_key', columns, areNew, once, insert: (pick) => ({ ...insertOf(pick), ...kind.insert(store, pick) }) })
    if (added.length === part.length) continue
    const isNew = new Set(added)
    for (const { taskKey } of part) if (!isNew.has(taskKey)) there.push(taskKey)
  }
  return there
}

function columnsOf(runs: readonly NewRun[]): Column[] {
  return [
    { name: 'task_key', type: 'text', values: runs.map((run) => run.taskKey) },
    { name: 'task_name', type: 'text', values: runs.map((run) => run.task) },
    { name: 'queue', type: 'text', values: runs.map((run) => run.queue) },
    { name: 'priority', type: 'integer', values: runs.map((run) => run.priority) },
    { name: 'concurrency_key', type: 'text', values: runs.map((run) => run.concurrencyKey) },
    { name: 'concurrency_limit', type: 'integer', values: runs.map((run) => run.concurrencyLimit) },
    { name: 'max_attempts', type: 'integer', values: runs.map((run) => run.maxAttempts) },
    { name: 'backoff_seconds', type: 'double', values: runs.map((run) => run.backoffSeconds) },
    { name: 'timeout_seconds', type: 'double', values: runs.map((run) => run.timeoutSeconds) },
    { name: 'payload', type: 'json', values: runs.map((run) => run.payload) },
  ]
}

function insertOf(pick: Pick) {
  const same = ['task_key', 'task_name', 'queue', 'priority', 'concurrency_key', 'concurrency_limit', 'max_attempts', 'backoff_seconds', 'timeout_seconds', 'payload']
  return {
    ...Object.fromEntries(same.map((name) => [name, pick(name)])),
    status: sql.lit('pending'),
    created_at: pick('at'),
    position: sql`${pick('base')} + ${pick('nth')}`,
  }
}

interface Kind {
  takes(run: NewRun): boolean
  columns(store: Store, runs: readonly NewRun[]): Column[]
  insert(store: Store, pick: Pick): Record<string, unknown>
}

const nowDue: Kind = {
  takes: ({ availableAt }) => availableAt === null,
  columns: () => [],
  insert: (_, pick) => ({ available_at: pick('at'), ready_queue: pick('queue'), waiting_key: pick('concurrency_key') }),
}

const dueIn: Kind = {
  takes: ({ availableAt }) => typeof availableAt === 'number',
  columns: (_, runs) => [{ name: 'delay', type: 'double', values: runs.map(({ availableAt }) => availableAt as number) }],
  insert: (store, pick) => ({ available_at: store.plusSeconds(pick('at'), pick('delay')), due_at: store.plusSeconds(pick('at'), pick('delay')) }),
}

const dueAt: Kind = {
  takes: ({ availableAt }) => availableAt instanceof Date,
  columns: (store, runs) => [{ name: 'due', type: 'instant', values: runs.map(({ availableAt }) => store.instantText(availableAt as Date)) }],
  insert: (_, pick) => ({ available_at: pick('due'), due_at: pick('due') }),
}

const KINDS: readonly Kind[] = [nowDue, dueIn, dueAt]

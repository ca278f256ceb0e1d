/** Runs in a queue, as tests enqueue and take them without a worker. */
import type { Instance } from '../../src/model/run.ts'
import { insertRuns, type NewRun } from '../../src/store/enqueue.ts'
import type { Store } from '../../src/store/tables.ts'
import { takeBatch, type TakenRun } from '../../src/store/take-batch.ts'
import { instance } from './ledgers.ts'

/** Enqueues runs of a task, in a queue named after it, so that no other test takes them. @returns the new keys */
export async function enqueue(store: Store, task: string, runs: readonly (Partial<NewRun> & { readonly label: string })[]): Promise<string[]> {
  const rows = runs.map(({ label, ...more }): NewRun => ({
    taskKey: `${task}:${label}`, task, queue: task, priority: 0, availableAt: null, concurrencyKey: null, concurrencyLimit: 1, maxAttempts: 3, backoffSeconds: 10, timeoutSeconds: null, payload: null, ...more,
  }))
  const there = await store.transaction((tx) => insertRuns(store, tx, rows))
  return rows.flatMap(({ taskKey }) => (there.includes(taskKey) ? [] : [taskKey]))
}

export async function take(store: Store, task: string, limit = 100, by: Instance = instance()): Promise<TakenRun[]> {
  return (await takeBatch(store, { queue: task, tasks: [task], limit, leaseSeconds: 60, instance: by })).runs
}

export function labels(runs: readonly { readonly taskKey: string }[]): string[] {
  return runs.map(({ taskKey }) => taskKey.slice(taskKey.indexOf(':') + 1))
}

/** Workers of a test: each is stopped after it, and what it says can be waited for. */
import type { AnyTasks, Ledger, Worker, WorkerEvent, WorkerOptions } from '../../src/index.ts'

export interface WatchedWorker {
  readonly worker: Worker
  readonly events: WorkerEvent[]
  /** Resolves with the first event, from the beginning on, that satisfies the probe. */
  until(probe: (event: WorkerEvent) => boolean, what?: string): Promise<WorkerEvent>
  /** Resolves when so many runs have ended in this way. */
  ended(how: 'completed' | 'failed' | 'released' | 'lost', times?: number): Promise<void>
}

const TOO_LONG_MS = 30_000

// eslint-disable-next-line typescript/no-explicit-any -- whatever tasks a test has
export async function startWorker(t: { after(hook: () => Promise<void>): void }, ledger: Ledger<any>, options: Omit<WorkerOptions<AnyTasks>, 'onEvent'>): Promise<WatchedWorker> {
  const events: WorkerEvent[] = []
  const waiting = new Set<() => void>()
  const worker = await ledger.worker({ poll: '100ms', stopTimeout: 0, grace: '200ms', ...options, onEvent: (event) => {
    events.push(event)
    for (const look of waiting) look()
  } })
  const timers = new Set<NodeJS.Timeout>()
  t.after(async () => {
    for (const timer of timers) clearTimeout(timer) // of what lost a race, and would keep the process waiting
    await worker.stop()
  })
  const until = (probe: (event: WorkerEvent) => boolean, what = 'an event') =>
    new Promise<WorkerEvent>((resolve, reject) => {
      const look = () => {
        const found = events.find(probe)
        if (!found) return
        waiting.delete(look)
        clearTimeout(timer)
        timers.delete(timer)
        resolve(found)
      }
      const timer = setTimeout(() => reject(new Error(`${what} did not come; heard: ${events.map(({ event }) => event).join(' ').slice(-500)}`)), TOO_LONG_MS)
      timers.add(timer)
      waiting.add(look)
      look()
    })
  return {
    worker,
    events,
    until,
    ended: async (how, times = 1) => void (await until(() => events.filter(({ event }) => event === how).length >= times, `${how} ${times} times`)),
  }
}

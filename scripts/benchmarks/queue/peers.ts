/** The peers, from tools/bench-peers, each as its own documentation has it fastest, or as it comes. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Side } from './side.ts'

const require = createRequire(join(import.meta.dirname, '../../../tools/bench-peers/package.json'))
const load = async (name: string) => (await import(pathToFileURL(require.resolve(name)).href)) as Record<string, never>

const PART = 10_000

interface Graphile {
  makeWorkerUtils(options: object): Promise<{ migrate(): Promise<void>; addJobs(specs: object[]): Promise<unknown>; addJob(task: string, payload: object): Promise<unknown>; release(): Promise<void> }>
  run(options: object): Promise<{ stop(): Promise<void> }>
}

/** `defaults`, or `fast`: a local queue of 500, 24 jobs at once, completions without delay in batches. */
export function graphile(mode: string, url: string): Side {
  let utils: Awaited<ReturnType<Graphile['makeWorkerUtils']>>
  let runner: Awaited<ReturnType<Graphile['run']>>
  let library: Graphile
  const silent = () => () => {}
  return {
    async prepare() {
      library = (await load('graphile-worker')) as unknown as Graphile
      const { Logger } = library as unknown as { Logger: new (factory: unknown) => unknown }
      utils = await library.makeWorkerUtils({ connectionString: url, logger: new Logger(silent) })
      await utils.migrate()
    },
    async enqueue(jobs) {
      for (let at = 0; at < jobs; at += PART) await utils.addJobs(Array.from({ length: Math.min(PART, jobs - at) }, (_, nth) => ({ identifier: 'job', payload: { id: at + nth } })))
    },
    enqueueOne: async (id) => void (await utils.addJob('job', { id })),
    async work(done) {
      const { Logger } = library as unknown as { Logger: new (factory: unknown) => unknown }
      const fast = { concurrentJobs: 24, maxPoolSize: 25, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }
      runner = await library.run({
        preset: { worker: { connectionString: url, logger: new Logger(silent), ...(mode === 'fast' && fast) } },
        noHandleSignals: true,
        parsedCronItems: [],
        taskList: { job: async ({ id }: { id: number }) => done(id) },
      })
    },
    async stop() {
      await runner.stop()
      await utils.release()
    },
  }
}

interface Boss {
  start(): Promise<unknown>
  createQueue(name: string, options?: object): Promise<void>
  insert(name: string, jobs: object[]): Promise<unknown>
  send(name: string, data: object): Promise<unknown>
  work(name: string, options: object, handler: (jobs: { data: { id: number } }[]) => Promise<void>): Promise<string>
  stop(options: object): Promise<void>
}

/** Batches of 500, four workers, the shortest poll; `fast`: fetching again at once while batches are full. */
export function pgBoss(mode: string, url: string): Side {
  let boss: Boss
  return {
    async prepare() {
      const { PgBoss } = (await load('pg-boss')) as unknown as { PgBoss: new (options: object) => Boss }
      boss = new PgBoss({ connectionString: url, supervise: false, schedule: false, useListenNotify: true })
      await boss.start()
      await boss.createQueue('job', { notify: true })
    },
    async enqueue(jobs) {
      for (let at = 0; at < jobs; at += PART) await boss.insert('job', Array.from({ length: Math.min(PART, jobs - at) }, (_, nth) => ({ data: { id: at + nth } })))
    },
    enqueueOne: async (id) => void (await boss.send('job', { id })),
    async work(done) {
      await boss.work('job', { batchSize: 500, localConcurrency: 4, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5, burstWhenBatchFull: mode === 'fast' }, async (batch) => {
        for (const { data } of batch) done(data.id)
      })
    },
    stop: () => boss.stop({ graceful: true, timeout: 10_000 }),
  }
}

/** The workers of a demonstration: all of them are at work when it starts, and none is left when it ends. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { openLedger } from '../../src/index.ts'
import { readEvents, recordTo } from './events.ts'
import { launch, raceLaunch } from './work.ts'

export class Crew {
  readonly #folder: string
  readonly #workers: ChildProcess[]

  /** One worker for each URL. @param service where they charge, if anywhere */
  static async start(folder: string, urls: readonly string[], service = ''): Promise<Crew> {
    const workers = urls.map((url, n) => fork(join(import.meta.dirname, 'worker.ts'), [url, join(folder, `worker-${n}.events`), `worker-${n}`, service], { stdio: 'inherit' }))
    process.once('exit', () => workers.forEach((worker) => worker.kill('SIGKILL')))
    await Promise.all(workers.map((worker) => once(worker, 'message')))
    return new Crew(folder, workers)
  }

  private constructor(folder: string, workers: ChildProcess[]) {
    this.#folder = folder
    this.#workers = workers
  }

  async stop(): Promise<void> {
    await Promise.all(this.#workers.map(async (worker) => {
      if (worker.exitCode !== null) throw new Error(`a worker ended with ${worker.exitCode}`)
      const ended = once(worker, 'exit')
      worker.send('stop')
      await ended
    }))
  }

  /** Launches every key again that anybody has begun, as the next host would: what is done stays done. */
  async launchAgain(url: string, service = ''): Promise<number> {
    const record = recordTo(join(this.#folder, 'again.events'))
    const keys = new Set(readEvents(this.#folder).flatMap(({ what, task, key }) => (what === 'started' && task === 'race' ? [Number(key!.split(':')[1])] : [])))
    const ledger = await openLedger(url, { connectTimeout: '30s', heartbeats: 'loop' })
    for (const key of keys) await launch(ledger, raceLaunch(key), record, service)
    await ledger.close()
    return keys.size
  }
}

/** Many processes that are told what to do at one instant: `fixture-racer.ts`, started once for all databases. */
import { fork, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { on, once } from 'node:events'
import { join } from 'node:path'
import type { Answer, Order } from './fixture-racer.ts'

const RACER = join(import.meta.dirname, 'fixture-racer.ts')

export class Racer {
  readonly process: ChildProcess
  readonly #answers: AsyncIterator<[Answer]>

  constructor(cache: string) {
    this.process = fork(RACER, { stdio: 'inherit', env: environment(cache) })
    this.#answers = on(this.process, 'message', { close: ['exit'] }) as AsyncIterator<[Answer]>
  }

  async answerTo(order: Order): Promise<Answer> {
    this.process.send(order)
    const { value, done } = await this.#answers.next()
    if (done) throw new Error('a racer ended without an answer')
    const [answer] = value as [Answer]
    if ('problem' in answer) throw new Error(answer.problem)
    return answer
  }

  async end(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const ended = once(this.process, 'exit')
    this.process.disconnect()
    await ended
  }
}

export class Fleet {
  readonly racers: readonly Racer[]

  /** @param cache a folder for compiled code, so that the many do not all compile the same */
  static async start(size: number, cache: string): Promise<Fleet> {
    await once(spawn(process.execPath, [RACER], { stdio: 'ignore', env: environment(cache) }), 'exit')
    return new Fleet(Array.from({ length: size }, () => new Racer(cache)))
  }

  private constructor(racers: readonly Racer[]) {
    this.racers = racers
  }

  /** All do it at the same instant, as far as they get a processor. */
  together(order: Order): Promise<Answer[]> {
    return Promise.all(this.racers.map((racer) => racer.answerTo(order)))
  }

  async end(): Promise<void> {
    await Promise.all(this.racers.map((racer) => racer.end()))
  }
}

function environment(cache: string): NodeJS.ProcessEnv {
  return { ...process.env, NODE_COMPILE_CACHE: cache }
}

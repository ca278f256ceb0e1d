/** Many processes that are told what to do at one instant: `fixture-racer.ts`, started once for all databases. */
import type { ChildProcess } from 'node:child_process'
import { on, once } from 'node:events'
import type { Bundled } from '../support/bundled.ts'
import type { Answer, Order } from './fixture-racer.ts'

const RACER = 'fixture-racer.ts'

export class Racer {
  readonly process: ChildProcess
  readonly #answers: AsyncIterator<[Answer]>

  constructor(programs: Bundled) {
    this.process = programs.fork(RACER)
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

  /** The first one comes and goes alone, so that the many do not all compile the same. */
  static async start(size: number, programs: Bundled): Promise<Fleet> {
    await once(programs.spawn(RACER, [], 'ignore'), 'exit')
    return new Fleet(Array.from({ length: size }, () => new Racer(programs)))
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

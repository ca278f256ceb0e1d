/** Trouble that a round makes with signals alone: deaths and long silences of those who hold runs, and of reapers. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Crew } from './crew.ts'
import { weighted, type Random } from './random.ts'
import type { WorkerSpec } from './worker-spec.ts'

export type Trouble = (crew: Crew, random: Random) => Promise<number>

const VICTIMS: readonly (readonly [WorkerSpec['role'], number])[] = [['worker', 5], ['reaper', 1]]

/** SIGKILL to so many of them, one after the other. */
export function kills(count: number, pauseMs = 150): Trouble {
  return repeatedly(count, pauseMs, (crew, random) => crew.kill(weighted(random, VICTIMS)))
}

/** SIGSTOP, and SIGCONT after about this long. */
export function freezes(count: number, ms: number): Trouble {
  return repeatedly(count, 50, (crew, random) => crew.freeze(ms * (0.8 + random() * 0.6), weighted(random, VICTIMS)))
}

/** All of them at the same time. */
export function together(...troubles: readonly Trouble[]): Trouble {
  return async (crew, random) => (await Promise.all(troubles.map((trouble) => trouble(crew, random)))).reduce((sum, faults) => sum + faults, 0)
}

/** Until there were so many, or the workers are done. @param once false when there was nobody to trouble */
export function repeatedly(count: number, pauseMs: number, once: (crew: Crew, random: Random) => Promise<boolean>): Trouble {
  return async (crew, random) => {
    let faults = 0
    while (faults < count && !crew.isDone) {
      await sleep(pauseMs * (0.5 + random()))
      if (!crew.isDone && (await once(crew, random))) faults++
    }
    return faults
  }
}

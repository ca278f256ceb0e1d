/** Many processes claim one key at the same moment, round after round: exactly one may get it, and every other is a recorded conflict. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { median, shown } from './median.ts'
import { places, type Place } from './places.ts'

const PROCESSES = 64
const ROUNDS = 50

export interface Lap {
  readonly round: number
  readonly outcome: 'claimed' | 'lost' | 'error'
  readonly told: string
}

let failures = 0
console.log(`${PROCESSES} processes race for one key, ${ROUNDS} rounds`)
for (const place of await places()) {
  const { winners, ms } = await race(place)
  const wrong = winners.filter((count) => count !== 1).length
  const recorded = await conflictsOf(place)
  const expected = (PROCESSES - 1) * ROUNDS
  const ok = wrong === 0 && recorded === expected
  if (!ok) failures++
  console.log(`  ${place.name.padEnd(10)}${ok ? 'ok' : 'FAILED'}: exactly one claimed in ${ROUNDS - wrong} of ${ROUNDS} rounds, ${recorded} of ${expected} conflicts recorded, ${shown(median(ms))} ms a round`)
}
process.exitCode = failures === 0 ? 0 : 1

async function race({ url }: Place): Promise<{ winners: number[]; ms: number[] }> {
  const racers = Array.from({ length: PROCESSES }, () => fork(join(import.meta.dirname, 'racer.ts'), [url]))
  await Promise.all(racers.map(answer)) // ready: its connection is open
  const [winners, ms]: [number[], number[]] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    const before = performance.now()
    const laps = await Promise.all(racers.map((racer) => lap(racer, round)))
    ms.push(performance.now() - before)
    winners.push(laps.filter(({ outcome }) => outcome === 'claimed').length)
    const errors = laps.filter(({ outcome }) => outcome === 'error').map(({ told }) => told)
    if (errors.length > 0) throw new Error(`round ${round}: ${errors.length} processes failed, one of them with ${errors[0]}`)
  }
  await Promise.all(racers.map((racer) => (racer.send('end'), once(racer, 'exit'))))
  return { winners, ms }
}

async function lap(racer: ChildProcess, round: number): Promise<Lap> {
  racer.send(round)
  return (await answer(racer)) as Lap
}

async function answer(racer: ChildProcess): Promise<unknown> {
  const stop = new AbortController()
  const died = once(racer, 'exit', { signal: stop.signal }).then(([code]) => Promise.reject(new Error(`a racer ended with ${code}`)))
  died.catch(() => {}) // Told to stop listening, once there is an answer.
  const [message] = await Promise.race([once(racer, 'message'), died])
  stop.abort()
  return message
}

async function conflictsOf(place: Place): Promise<number> {
  const driver = place.driver()
  const [row] = await driver.query(`select count(*) as conflicts from task_attempts where outcome = 'conflict' and reason = 'held' and held_by_instance is not null`)
  await driver.close()
  return Number(row?.['conflicts'])
}

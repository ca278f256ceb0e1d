/** On a table that is full of what may not be claimed, against an empty one, in turn. */
import { median, shown } from '../median.ts'
import { atLeast } from './aim.ts'
import { fill, type Crowd } from './crowds.ts'
import { drop, jobsASecond, newLedger, type Server, type Terms } from './place.ts'

const AIMS: Readonly<Record<Crowd, number>> = { completed: 0.9, future: 0.8, blocked: 0.8, keys: 0.7 }

/** Each of the crowds in the one table; the aim is the least of theirs. */
export async function crowds(server: Server, which: readonly Crowd[], { jobs, turns, crowd: size }: Terms): Promise<void> {
  const [empty, full] = [await newLedger(server), await newLedger(server)]
  const begun = performance.now()
  for (const crowd of which) await fill(full, crowd, size)
  const filled = (performance.now() - begun) / 1000
  await jobsASecond(full, 10) // Blocked ones are looked at once each, and parked.
  const [among, alone]: [number[], number[]] = [[], []]
  for (let turn = 0; turn < turns; turn++) {
    alone.push(await jobsASecond(empty, jobs))
    among.push(await jobsASecond(full, jobs))
  }
  console.log(`${which.join(' + ')}: ${server.name}${size === 1 ? '' : `, ${size} of the size`}, ${jobs} jobs: ${shown(median(among))} jobs/s, in an empty table ${shown(median(alone))} (filled in ${shown(filled)} s)`)
  console.log(atLeast(Math.min(...which.map((crowd) => AIMS[crowd])), 'jobs/s against an empty table', median(among) / median(alone)))
  await drop(server, full)
  await drop(server, empty)
}

/** This project against a bare loop of its own statements, on every database. */
import { median, shown } from '../median.ts'
import { atLeast } from './aim.ts'
import { bareLoop } from './bare.ts'
import { drop, jobsASecond, newLedger, type Server, type Terms } from './place.ts'

export async function bare(server: Server, { jobs, turns }: Terms): Promise<void> {
  const [ours, theirs]: [number[], number[]] = [[], []]
  for (let turn = 0; turn < turns; turn++) {
    const url = await newLedger(server)
    ours.push(await jobsASecond(url, jobs))
    theirs.push(await bareLoop(url))
    await drop(server, url)
  }
  console.log(`bare: ${server.name}, ${jobs} jobs: ${shown(median(ours))} jobs/s, the bare loop ${shown(median(theirs))}`)
  const ratio = median(ours) / median(theirs)
  console.log(server.name === 'postgres' ? `  jobs/s against the bare loop: ${shown(ratio)}` : atLeast(0.8, 'jobs/s against the bare loop', ratio))
}

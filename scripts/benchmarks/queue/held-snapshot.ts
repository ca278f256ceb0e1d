/** A transaction with a snapshot that stays open while jobs go by: nothing that was updated since can be cleaned away. */
import mysql from 'mysql2/promise'
import pg from 'pg'
import { median, shown } from '../median.ts'
import { atLeast } from './aim.ts'
import { drop, jobsASecond, newLedger, type Server, type Terms } from './place.ts'

const ROUNDS = 10

/** Five times `jobs` under the snapshot, in ten rounds; the last ones against as many before it was taken, on the same table. */
export async function snapshot(server: Server, { jobs, turns }: Terms): Promise<void> {
  const url = await newLedger(server)
  const part = Math.round((jobs * 5) / ROUNDS)
  const [before, under]: [number[], number[]] = [[], []]
  for (let turn = 0; turn < turns; turn++) before.push(await jobsASecond(url, part))
  const release = await hold(url)
  for (let round = 0; round < ROUNDS; round++) under.push(await jobsASecond(url, part))
  await release()
  console.log(`snapshot: ${server.name}, ${part * ROUNDS} jobs under a snapshot in ${ROUNDS} rounds: ${under.map(shown).join(', ')} jobs/s; before it ${shown(median(before))}`)
  console.log(atLeast(0.7, 'jobs/s at the end', median(under.slice(-Math.min(turns, ROUNDS))) / median(before)))
  await drop(server, url)
}

/** @returns how to let go of it */
async function hold(url: string): Promise<() => Promise<void>> {
  const texts = ['select count(*) from task_fences']
  if (url.startsWith('postgres')) {
    const client = new pg.Client(url)
    await client.connect()
    for (const text of ['begin isolation level repeatable read', ...texts]) await client.query(text)
    return () => client.end()
  }
  const connection = await mysql.createConnection(url)
  for (const text of ['set transaction isolation level repeatable read', 'start transaction with consistent snapshot', ...texts]) await connection.query(text)
  return () => connection.end()
}

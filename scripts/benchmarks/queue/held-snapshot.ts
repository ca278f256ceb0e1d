/** A transaction with a snapshot that stays open while jobs go by: nothing that was updated since can be cleaned away. */
import mysql from 'mysql2/promise'
import pg from 'pg'
import { median, shown } from '../median.ts'
import { atLeast } from './aim.ts'
import { drop, measureOn, newLedger, type Server, type Terms } from './place.ts'

/** Five times `jobs`, done by one worker; the last tenth of them under the snapshot, against the last tenth without one. */
export async function snapshot(server: Server, { jobs }: Terms): Promise<void> {
  const [free, held] = [await tenths(server, jobs * 5, false), await tenths(server, jobs * 5, true)]
  console.log(`snapshot: ${server.name}, ${jobs * 5} jobs in tenths under a snapshot: ${held.map(shown).join(', ')} jobs/s; without: ${free.map(shown).join(', ')}`)
  console.log(atLeast(0.7, 'jobs/s in the last three tenths', median(held.slice(-3)) / median(free.slice(-3))))
}

/** Jobs a second, by tenths. */
async function tenths(server: Server, jobs: number, isHeld: boolean): Promise<number[]> {
  const url = await newLedger(server)
  const release = isHeld ? await hold(url) : async () => {}
  const ends = (await measureOn(url, 'runledger', 'defaults', jobs)).tenths
  await release()
  await drop(server, url)
  return ends.map((end, nth) => jobs / 10 / (end - (ends[nth - 1] ?? 0)))
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

/** One migration at a time on MySQL and MariaDB, whose DDL commits by itself, so that no transaction can hold a lock around it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql, type Kysely } from 'kysely'
import { v7 as uuidv7 } from 'uuid'
import { diagnose } from './mysql-errors.ts'
import { retryTransient } from './retry.ts'

export const CLUSTER_LEASE_SECONDS = 60
const RENEW_EVERY_MS = 10_000
const POLL_MS = 250

/** Runs `work` while no other process runs one. Waits as long as the other needs. */
export async function exclusively<Tables, T>(db: Kysely<Tables>, isCluster: boolean, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  await sql`create table if not exists runledger_lock (id integer primary key, holder varchar(36), held_until datetime(6)) engine = InnoDB`.execute(db)
  await retryTransient(diagnose, () => sql`insert into runledger_lock (id) values (1) on duplicate key update id = id`.execute(db))
  return isCluster ? underLease(db, work) : underRowLock(db, work)
}

/** A row locked on a second connection says who migrates; it is let go when we die. */
async function underRowLock<Tables, T>(db: Kysely<Tables>, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  return retryTransient(diagnose, () => db.transaction().setIsolationLevel('read committed').execute(async (lock) => {
    await sql`select id from runledger_lock where id = 1 for update`.execute(lock)
    return work(db)
  }))
}

/**
 * Differs by necessity: in a Galera cluster row locks are known to one node only (named locks too), and DDL that comes in
 * through two nodes at once has been seen to lock up all of them for good (MariaDB 10.11). What is committed is known to
 * all, so the lock is a lease in the row. Who dies with it keeps the others waiting until it has run out.
 */
export async function underLease<Tables, T>(db: Kysely<Tables>, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  const holder = uuidv7()
  while (!(await take(db, holder))) await sleep(POLL_MS * (0.5 + Math.random()))
  const renewal = setInterval(() => void take(db, holder).catch(() => {}), RENEW_EVERY_MS) // One that fails is followed by others in time.
  try {
    return await work(db)
  } finally {
    clearInterval(renewal)
    await letGo(db, holder).catch(() => {}) // Then it runs out by itself; what came of the work is what counts.
  }
}

/** Takes the lock where it is free, or renews our own. */
async function take<Tables>(db: Kysely<Tables>, holder: string): Promise<boolean> {
  const { numAffectedRows } = await retryTransient(diagnose, () => sql`
    update runledger_lock set holder = ${holder}, held_until = utc_timestamp(6) + interval ${sql.lit(CLUSTER_LEASE_SECONDS)} second
    where id = 1 and (holder is null or holder = ${holder} or held_until < utc_timestamp(6))`.execute(db))
  return numAffectedRows === 1n
}

async function letGo<Tables>(db: Kysely<Tables>, holder: string): Promise<void> {
  await retryTransient(diagnose, () => sql`update runledger_lock set holder = null, held_until = null where id = 1 and holder = ${holder}`.execute(db))
}

/** One migration at a time on MySQL and MariaDB, whose DDL commits by itself, so that no transaction can hold a lock around it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql, type Kysely } from 'kysely'
import { v7 as uuidv7 } from 'uuid'
import type { Dialect } from './dialect.ts'
import { retryTransient } from './retry.ts'

export const CLUSTER_LEASE_SECONDS = 60
const RENEW_EVERY_MS = 10_000
const POLL_MS = 250

/** The table whose one row is the lock of this ledger, and what its errors mean. */
export interface MigrationLock {
  readonly table: ReturnType<Dialect['table']>
  readonly diagnose: Dialect['diagnose']
}

/** Runs `work` while no other process runs one. Waits as long as the other needs. */
export async function exclusively<Tables, T>(db: Kysely<Tables>, lock: MigrationLock, isCluster: boolean, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  await sql`create table if not exists ${lock.table} (id integer primary key, holder varchar(36), held_until datetime(6)) engine = InnoDB`.execute(db)
  await retryTransient(lock.diagnose, () => sql`insert into ${lock.table} (id) values (1) on duplicate key update id = id`.execute(db))
  return isCluster ? underLease(db, lock, work) : underRowLock(db, lock, work)
}

/** A row locked on a second connection says who migrates; it is let go when we die. */
async function underRowLock<Tables, T>(db: Kysely<Tables>, lock: MigrationLock, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  return retryTransient(lock.diagnose, () => db.transaction().setIsolationLevel('read committed').execute(async (tx) => {
    await sql`select id from ${lock.table} where id = 1 for update`.execute(tx)
    return work(db)
  }))
}

/**
 * Differs by necessity: in a Galera cluster row locks are known to one node only (named locks too), and DDL that comes in
 * through two nodes at once has been seen to lock up all of them for good (MariaDB 10.11). What is committed is known to
 * all, so the lock is a lease in the row. Who dies with it keeps the others waiting until it has run out.
 */
export async function underLease<Tables, T>(db: Kysely<Tables>, lock: MigrationLock, work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
  const holder = uuidv7()
  while (!(await take(db, lock, holder))) await sleep(POLL_MS * (0.5 + Math.random()))
  const renewal = setInterval(() => void take(db, lock, holder).catch(() => {}), RENEW_EVERY_MS) // One that fails is followed by others in time.
  try {
    return await work(db)
  } finally {
    clearInterval(renewal)
    await letGo(db, lock, holder).catch(() => {}) // Then it runs out by itself; what came of the work is what counts.
  }
}

/** Takes the lock where it is free, or renews our own. */
async function take<Tables>(db: Kysely<Tables>, lock: MigrationLock, holder: string): Promise<boolean> {
  const { numAffectedRows } = await retryTransient(lock.diagnose, () => sql`
    update ${lock.table} set holder = ${holder}, held_until = utc_timestamp(6) + interval ${sql.lit(CLUSTER_LEASE_SECONDS)} second
    where id = 1 and (holder is null or holder = ${holder} or held_until < utc_timestamp(6))`.execute(db))
  return numAffectedRows === 1n
}

async function letGo<Tables>(db: Kysely<Tables>, lock: MigrationLock, holder: string): Promise<void> {
  await retryTransient(lock.diagnose, () => sql`update ${lock.table} set holder = null, held_until = null where id = 1 and holder = ${holder}`.execute(db))
}

/**
 * The line of a queue. A pending run stands in one of three places: ready (`ready_queue`: it may be claimed now), behind
 * a busy concurrency key (`waiting_key` without `ready_queue`), or its time has yet to come (`due_at`).
 *
 * This is only about finding runs quickly; what may be processed is decided by the unique `active_key` alone. A run that
 * stands in the wrong place is late, never wrong, and store/tend-line.ts moves it.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Status } from '../model/states.ts'
import type { Store } from './tables.ts'

/** Where runs stand that name no queue. */
export const DEFAULT_QUEUE = 'default'

/** The end of the line: microseconds since 1970 on the database's clock. Of equal priority, the lower position is first. */
export function positionNow(store: Store): RawBuilder<bigint> {
  return sql<bigint>`round(${store.secondsBetween(store.instant(new Date(0)), store.now())} * 1000000)`
}

/** In line at once. That its key may be busy is found out by whoever comes to claim it. */
export function inLine() {
  return { ready_queue: sql.ref<string>('queue'), waiting_key: sql.ref<string | null>('concurrency_key'), due_at: null }
}

/** Not before `at`. */
export function dueLater(at: RawBuilder<Date>) {
  return { ready_queue: null, waiting_key: null, due_at: at }
}

/** Stands nowhere: somebody has it, or it is over. */
export const OUT_OF_LINE = { ready_queue: null, waiting_key: null, due_at: null } as const

/**
 * A condition that is looked at beside the index by which rows are found: no other index answers to it, and no statistics of
 * it, which may be of yesterday's queue, let a planner believe that hardly a row meets it and a LIMIT must read them all.
 */
export function beside(condition: RawBuilder<boolean>): RawBuilder<boolean> {
  return sql<boolean>`case when ${condition} then true else false end`
}

/**
 * The state of rows that are named by their keys, or found by their place in line. Beside the index: through that of the
 * states, a statement would read, and lock, whatever else is in this one.
 */
export function isStill(status: Status): RawBuilder<boolean> {
  return beside(sql<boolean>`status = ${sql.lit(status)}`)
}

/**
 * The order of keys among rows that another index finds. As an expression, since for the first hundred of them a database
 * may rather walk the primary key from its beginning: six million rows, for twenty thousand that are processing.
 */
export const BY_KEY: RawBuilder<string> = sql<string>`coalesce(task_key, '')`

/** Its time has come. The clock is read once: as it is, a database that may find it different for each row would look at all of them. */
export function isDueBy(store: Store, column: 'due_at' | 'available_at'): RawBuilder<boolean> {
  return sql<boolean>`${sql.ref(column)} <= (select ${store.now()})`
}

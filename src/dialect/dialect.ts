/**
 * The seam between the ledger and a database: everything that differs, as verbs and as pieces of SQL.
 *
 * One file a database implements it; `connect.ts` is the only switch. The store asks for what it wants and never
 * which database it talks to. Where the bodies differ in kind, a comment in the implementation opens with
 * "Differs by necessity:".
 */
import type { Expression, Kysely, RawBuilder, SelectQueryBuilder, Transaction } from 'kysely'
import type { Checkup } from '../model/checkup.ts'
import type { AbsentRows } from './absent-rows.ts'
import type { CallerConnection } from './caller-connection.ts'
import type { Ddl } from './ddl.ts'
import type { Rights } from './rights.ts'

/** What an error of the driver means for us. */
export type Diagnosis =
  /** Rolled back for certain (deadlock, serialization, lock timeout, busy): the same work may be tried again. */
  | { readonly kind: 'transient' }
  /** The connection is gone, refused or read-only: whether the last statement took effect is unknown. */
  | { readonly kind: 'unavailable'; readonly problem: string }
  /** The server answered and said no (password, unknown database): asking again would not help. */
  | { readonly kind: 'refused'; readonly problem: string }
  /** A unique constraint was violated: the one of this name; `primary` for the primary key of a table of the ledger. */
  | { readonly kind: 'duplicate'; readonly constraint: string }
  /** A table or column is not there: the schema is not ours, or not yet. */
  | { readonly kind: 'no_table' }
  | { readonly kind: 'other' }

/** Moves the database's clock as the ledger sees it; tests hand one in, nobody else does. */
export interface ClockOffset {
  offsetMs: number
}

/** What `listen` gives: `null` for a queue means that any may have something, since something may have been missed. */
export interface Listener {
  close(): Promise<void>
}

export interface DistinctAfter {
  readonly table: string
  readonly column: string
  readonly after: string
  /** As many at most. */
  readonly limit: number
}

/** What a queue needs beside the rest: many rows at a time, and hints. */
export interface BatchVerbs<Tables = unknown> {
  /**
   * Inserts those of many rows whose primary key is not there yet, in one statement where the database can. A key that
   * is there poisons no transaction; any other violation is thrown.
   * @returns the keys of the rows that were inserted
   */
  insertAbsent(db: Kysely<Tables>, rows: AbsentRows): Promise<string[]>

  /**
   * Locks the rows that a query selects, passing over what others have locked, and updates those whose column `mine` is 1.
   * @returns all that were selected, as they were before; and how many were updated
   */
  updateSelected<O extends Selected>(tx: Kysely<Tables>, update: SelectedUpdate<Tables, O>): Promise<{ rows: O[]; updated: number }>
  /** Whether that is one statement, which commits by itself outside of a transaction. */
  readonly updatesInOne: boolean
  /** The distinct values of an indexed column of texts that come after one, in order: however many rows share a value, about one step each. */
  distinctAfter(db: Kysely<Tables>, of: DistinctAfter): Promise<string[]>
  /** Selected in a transaction, it has the statements after it read by indexes, in their order: a queue changes faster than any statistics of it. */
  readonly trustIndexes: RawBuilder<unknown>
  /** The rows, locked until the transaction ends, after whoever has them locked now. */
  locked<O>(query: SelectQueryBuilder<Tables, never, O>): SelectQueryBuilder<Tables, never, O>

  /** Marks a statement that is sent again and again: its first words. */
  readonly often: RawBuilder<unknown>
  /** The same as the text of a parameter, for `insertAbsent`. */
  instantText(date: Date): string
  /** Text that is JSON, as a value for a column of that type. */
  asJson(text: Expression<unknown>): RawBuilder<string>
  /** True for what is one of the values, however many: one parameter where the database can. */
  oneOf(value: Expression<unknown>, values: readonly string[]): RawBuilder<boolean>

  /**
   * Tells whoever listens that the queue has something, at once, or when the caller's transaction commits. A hint: it may
   * be lost, or go nowhere.
   */
  announce(queue: string, tx?: Kysely<Tables>): Promise<void>
  /** Hears announcements on a connection of its own that it opens again when it is lost, until it is closed. */
  listen(heard: (queue: string | null) => void): Listener
}

export interface Dialect<Tables = unknown> extends BatchVerbs<Tables> {
  /** For sentences to people: `PostgreSQL 15.18 at 127.0.0.1:5432/app`. Never a password. */
  readonly place: string
  /** Kysely over the pool, on the ledger's schema. Plain reads go through it; writes through the two verbs below. */
  readonly db: Kysely<Tables>
  /** Words of schema definitions, for the migrations. */
  readonly ddl: Ddl
  /** A table or view of the ledger by its full name, for raw SQL: never left to a search path. */
  table(name: string): RawBuilder<unknown>

  /**
   * One short transaction (READ COMMITTED, or the one writer of SQLite). A transient failure, at COMMIT too, is rolled
   * back explicitly and the whole work is tried again with jitter, so `work` must have no effect outside it.
   * @throws the driver's error, diagnosed `unavailable` when the outcome of the COMMIT is unknown
   */
  transaction<T>(work: (tx: Transaction<Tables>) => Promise<T>): Promise<T>

  /** One statement that commits by itself, tried again like a transaction. */
  statement<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T>

  /**
   * Raises the fence of `scope` by one and inserts one row that carries it, in one transaction and as few round trips
   * as the database allows. The scope's row is locked first, so fences of a scope are handed out in commit order.
   * @returns the new fence, or null when `unless` selected a row and nothing was inserted
   * @throws the driver's error for a violated constraint
   */
  insertFenced(insert: FencedInsert): Promise<bigint | null>

  /**
   * A connection or transaction of the caller's on the same database, for statements that are to be part of what it
   * commits. @throws INVALID_OPTION
   */
  on(connection: CallerConnection): Promise<Kysely<Tables>>

  /** Lets a writer with this token through to a resource, on `db`; false, and nothing changed, when a greater one was there before. */
  guardFence(db: Kysely<Tables>, resource: string, token: bigint): Promise<boolean>

  /**
   * Waits until every claim of a new key in these scopes that began before this call is over: what was committed before
   * it is seen by whoever inserts a key from then on. @returns false when one of them does not end
   */
  outwaitClaims(scopes: readonly string[]): Promise<boolean>

  /** Claimable rows only: rows that others have locked are passed over instead of waited for. */
  skipLocked<O>(query: SelectQueryBuilder<Tables, never, O>): SelectQueryBuilder<Tables, never, O>

  /** Deletes the rows whose `column` has one of these values, and waits for no other row. @returns how many */
  deleteBy(db: Kysely<Tables>, by: DeleteBy): Promise<number>

  /** The database's clock, to the microsecond where it has them. */
  now(): RawBuilder<Date>
  /** An instant and a number of seconds after it. */
  plusSeconds(instant: Expression<unknown>, seconds: Expression<unknown>): RawBuilder<Date>
  /** Seconds from one instant to another, as a number. */
  secondsBetween(from: Expression<unknown>, to: Expression<unknown>): RawBuilder<number>
  /** An instant as a parameter. */
  instant(date: Date): RawBuilder<Date>
  /** An instant as the driver returned it. */
  readInstant(value: unknown): Date | null

  diagnose(error: unknown): Diagnosis

  /** What of the server, or the file, and of the way to it matters to a ledger. Needs no schema. */
  examine(): Promise<readonly Checkup[]>

  /** The lines with which an administrator gives a user these rights on the ledger. @param user a plain name, checked */
  grants(user: string, rights: Rights): readonly string[]

  /**
   * Runs `work` while no other process runs one, for migrations; all of it is one transaction where the database has
   * transactional DDL. Waits as long as the other needs.
   */
  exclusively<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T>

  close(): Promise<void>
}

/** The rows of `updateSelected`: the primary key, and whether the row is to be updated. */
export interface Selected {
  readonly task_key: string
  readonly mine: number
}

export interface SelectedUpdate<Tables, O> {
  readonly table: string
  /** Of this table alone. */
  readonly select: SelectQueryBuilder<Tables, never, O>
  /** The name of the index that has its rows, in its order. */
  readonly index: string
  readonly set: Readonly<Record<string, unknown>>
}

/** The scope whose counter a new scope begins above; no task and no concurrency key has this name. */
export const FLOOR_SCOPE = ''

export interface DeleteBy {
  readonly table: string
  readonly column: string
  /** The index that begins with the column: `primary`, or its name. */
  readonly index: string
  /** One at least. */
  readonly values: readonly (string | number)[]
}

/** A row for `insertFenced`: column and value pairs (the fence is added), inserted unless `unless` selects a row. */
export interface FencedInsert {
  readonly scope: string
  readonly table: string
  readonly values: Readonly<Record<string, unknown>>
  /** A query that must select nothing, or nothing is inserted. */
  readonly unless: Expression<unknown>
}

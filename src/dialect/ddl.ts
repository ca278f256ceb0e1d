/** Words of schema definitions that differ between databases; migrations are written with them and then frozen. */
import type { Kysely, RawBuilder } from 'kysely'

type Sql = RawBuilder<unknown>

export interface Ddl {
  /** Text compared byte for byte, of at most `length` characters. */
  key(length: number): Sql
  /** Long text of people and programs. */
  readonly text: Sql
  readonly json: Sql
  /** UTC, with microseconds where the database has them. */
  readonly instant: Sql
  readonly integer: Sql
  readonly bigint: Sql
  readonly double: Sql
  readonly boolean: Sql
  /** The rest of the definition of a numbered primary key column. */
  readonly numberedKey: Sql
  /** What follows the closing parenthesis of CREATE TABLE. */
  readonly tableOptions: Sql
  /** The name of a constraint; some servers want it unlike every other of the database. */
  constraint(name: string): Sql

  /** Adds a column that is not there yet; safe to run again. `definition` is its type and what follows. */
  addColumn(db: Kysely<unknown>, table: string, column: string, definition: Sql): Promise<void>
  /** Makes an index that is not there yet; safe to run again. */
  createIndex(db: Kysely<unknown>, index: Index): Promise<void>
  /** Makes or replaces a view; safe to run again. */
  createView(db: Kysely<unknown>, name: string, query: Sql): Promise<void>
}

export interface Index {
  /** Named `table_column…`, since SQLite reports a violation by its columns. */
  readonly name: string
  readonly table: string
  readonly columns: readonly string[]
  readonly unique?: boolean
  /** Only rows that meet this are indexed, where the database can say so; the index must be right without it as well. */
  readonly where?: Sql
}

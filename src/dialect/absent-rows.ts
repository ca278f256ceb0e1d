/** Many rows for one INSERT, as columns of values, of which those whose key is there already are left out. */
import { sql, type RawBuilder } from 'kysely'

export type ColumnType = 'text' | 'integer' | 'double' | 'json' | 'instant'

/** One value a row; an instant as the dialect writes it (`instantText`). */
export interface Column {
  readonly name: string
  readonly type: ColumnType
  readonly values: readonly (string | number | null)[]
}

/** A value of the row by the name of its column, or one that is computed once. */
export type Pick = (name: string) => RawBuilder<unknown>

export interface AbsentRows {
  readonly table: string
  /** The column of the primary key; among `columns` too. */
  readonly key: string
  readonly columns: readonly Column[]
  /** Nobody else can have these keys: one that is there all the same may be thrown as a violation, and nothing needs to be looked up. */
  readonly areNew?: boolean
  /** Computed once for all rows, such as the time. */
  readonly once: Readonly<Record<string, RawBuilder<unknown>>>
  /** What is inserted, column by column. */
  insert(pick: Pick): Readonly<Record<string, unknown>>
}

/** The rows as a table expression `r`, for a database that takes a column as one parameter; a column of one value is sent once. */
export function asTable(columns: readonly Column[], source: (varied: readonly Column[]) => RawBuilder<unknown>, single: (column: Column) => RawBuilder<unknown>): { from: RawBuilder<unknown>; pick: Pick } {
  const isVaried = ({ values }: Column, index: number) => index === 0 || values.some((value) => value !== values[0])
  const varied = columns.filter(isVaried)
  const known = new Map(columns.map((column) => [column.name, varied.includes(column) ? sql`r.${sql.ref(column.name)}` : single(column)]))
  return { from: source(varied), pick: (name) => known.get(name) ?? sql`c.${sql.ref(name)}` }
}

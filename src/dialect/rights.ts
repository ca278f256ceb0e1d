/** What a user may do to the ledger's tables, and how an error says what it may not. */

export type TableRight = 'select' | 'insert' | 'update' | 'delete'

/** The rights on each table and view, by its name without prefix; `schema` is the right to change the tables themselves. */
export interface Rights {
  readonly tables: Readonly<Record<string, readonly TableRight[]>>
  readonly schema: boolean
}

/** For the one line that a person reads. @param right such as `INSERT` @param on such as `task_runs` */
export function lacking(right: string, on: string): string {
  return `this user lacks the right ${right} on ${on}; 'runledger grants' prints what each role needs`
}

/** Without a word about which one. */
export const LACKING_SOME = "this user lacks a right on the tables of the ledger; 'runledger grants' prints what each role needs"

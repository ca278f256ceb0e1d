/** What a migration is given: a database to change and the words to say it in. */
import type { Kysely } from 'kysely'
import type { Dialect } from '../src/dialect/dialect.ts'

export interface MigrationContext extends Pick<Dialect, 'ddl' | 'table' | 'now' | 'plusSeconds' | 'secondsBetween'> {
  readonly db: Kysely<unknown>
}

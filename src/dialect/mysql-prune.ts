/** What MySQL and MariaDB do their own way when old runs are deleted beside running work. */
import { sql, type Kysely, type RawBuilder } from 'kysely'
import { FLOOR_SCOPE, type Dialect } from './dialect.ts'

/**
 * Differs by necessity: a DELETE that scans the table, as the optimizer likes to where it is small, waits for every row on
 * its way that somebody has locked, and FORCE INDEX still lets it scan that. A join in this order is one look-up a value.
 */
export async function deleteBy<Tables>(db: Kysely<Tables>, table: RawBuilder<unknown>, index: RawBuilder<unknown>, column: string, values: readonly (string | number)[]): Promise<number> {
  const { numAffectedRows } = await sql`
    delete d from (select ${sql.join(values, sql` as value union all select `)} as value) v
      straight_join ${table} d force index (${index}) on d.${sql.ref(column)} = v.value`.execute(db)
  return Number(numAffectedRows)
}

/**
 * Differs by necessity: other people's transactions can not be seen without a right to all of them. But a claim locks
 * its scope's row before its insert takes a view of the tables, so whoever has had that row has let earlier claims end.
 * In a Galera cluster the lock is known to one node only, but a change to the row rolls back claims in flight on the others.
 */
export async function outwaitClaims<Tables>(transaction: Dialect<Tables>['transaction'], fences: ReturnType<Dialect['table']>, isCluster: boolean, scopes: readonly string[]): Promise<boolean> {
  for (const scope of scopes) {
    await transaction((tx) => sql`
      insert into ${fences} (scope, counter)
        select ${scope}, coalesce((select f.counter from ${fences} f where f.scope = ${FLOOR_SCOPE}), 0) from dual
        on duplicate key update counter = counter + ${sql.lit(isCluster ? 1 : 0)}`.execute(tx))
  }
  return true
}
